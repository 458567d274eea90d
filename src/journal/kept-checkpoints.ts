/**
 * Holds a journal against checkpoints that an auditor kept where whoever owns this machine cannot change them. One alone
 * tells that the journal is another; several tell where it began to be. Says what each of them shows; computes no chain.
 */
import { existsSync } from 'node:fs';
import type { KeyObject } from 'node:crypto';
import type { Finding } from './chain-check.ts';
import { type Checkpoint, isSigned, readHeadFile, readNoteFile } from './checkpoints.ts';
import { isNoteSigned, type Note } from './notes.ts';
import type { SeqRange } from './types.ts';

/**
 * What a kept checkpoint says of the journal. contained: it holds that record, and its key signed. resigned: it holds it,
 * but another key signed then. unchecked: it holds it, and there is no key to tell who signed. cut: it ends before it. rewritten: it has another
 * record there, or one before it. unreadable: one of those cannot be read, so nobody knows.
 */
export type KeptVerdict = 'contained' | 'resigned' | 'unchecked' | 'cut' | 'rewritten' | 'unreadable' | 'unusable';

export interface KeptResult {
  readonly file: string;
  /** The last record that it knows; null when it cannot be read. */
  readonly seq: number | null;
  readonly verdict: KeptVerdict;
}

/** What is known of the journal when the kept checkpoints are looked at. */
export interface KeptAgainst {
  /** The record that the check of the chain ended at, and the newest one by now. */
  readonly headSeq: number;
  readonly newestSeq: number;
  /** The first that cannot be read; null: all can. */
  readonly unreadableFrom: number | null;
  /** The chain's hashes, as they were computed, at the seqs that were asked for. */
  readonly hashes: ReadonlyMap<number, Uint8Array>;
  /** The tree's roots in the same way, and its name. */
  readonly roots: ReadonlyMap<number, Uint8Array>;
  readonly origin: string | null;
  /** The key that must have signed, and where it is; null when there is none. */
  readonly key: KeyObject | null;
  readonly keyPath: string;
}

/** A checkpoint of the chain, or one of the tree. */
type Kept = { readonly file: string; readonly seq: number } & (
  | { readonly kind: 'chain'; readonly checkpoint: Checkpoint }
  | { readonly kind: 'tree'; readonly note: Note }
);

/** What a file holds. */
export type KeptFile = Kept | { readonly kind: 'none'; readonly file: string; readonly problem: string };

export const readKept = (file: string): KeptFile => {
  if (!existsSync(file)) return { kind: 'none', file, problem: `${file} is missing.` };
  const note = readNoteFile(file);
  if (note !== null) return { kind: 'tree', file, seq: note.size, note };
  const checkpoint = readHeadFile(file);
  if (checkpoint === null || typeof checkpoint === 'string')
    return { kind: 'none', file, problem: checkpoint ?? `${file} is missing.` };
  return { kind: 'chain', file, seq: checkpoint.seq, checkpoint };
};

/** The records that checkpoints of the chain know: their hashes are what the check of the chain has to come back with. */
export const chainSeqs = (files: readonly KeptFile[]): number[] =>
  files.flatMap((kept) => (kept.kind === 'chain' ? [kept.seq] : []));

/** The sizes that checkpoints of the tree know, in the same way. */
export const treeSizes = (files: readonly KeptFile[]): number[] =>
  files.flatMap((kept) => (kept.kind === 'tree' ? [kept.seq] : []));

/** Of the chain each stretch is computed for itself, and the tree's roots are of all records before them. */
const isUnreadable = (kept: Kept, { hashes, unreadableFrom }: KeptAgainst): boolean =>
  unreadableFrom !== null && kept.seq >= unreadableFrom && !(kept.kind === 'chain' && hashes.has(kept.seq));

const isSame = (kept: Kept, { hashes, roots, origin }: KeptAgainst): boolean => {
  const known = kept.kind === 'chain' ? hashes.get(kept.seq) : roots.get(kept.seq);
  if (known === undefined) return false;
  return kept.kind === 'chain'
    ? Buffer.from(known).equals(kept.checkpoint.hash)
    : kept.note.origin === origin && Buffer.from(known).equals(kept.note.root);
};

const isSignedBy = (key: KeyObject, kept: Kept): boolean =>
  kept.kind === 'chain' ? isSigned(key, kept.checkpoint) : isNoteSigned(key, kept.note);

/** null: it was appended since the chain was read, and is the next check's. */
const verdictOf = (kept: Kept, against: KeptAgainst): KeptVerdict | null => {
  const { headSeq, newestSeq, key } = against;
  if (kept.seq > headSeq) return kept.seq > newestSeq ? 'cut' : null;
  if (isUnreadable(kept, against)) return 'unreadable';
  if (!isSame(kept, against)) return 'rewritten';
  if (key === null) return 'unchecked';
  return isSignedBy(key, kept) ? 'contained' : 'resigned';
};

/** From the last record that a kept checkpoint vouches for to the one that differs: what is not as it was. */
const stretchOf = ([soundSeq, badSeq]: SeqRange): string =>
  soundSeq + 1 === badSeq ? `record ${badSeq} is` : `of records ${soundSeq + 1} to ${badSeq} at least one is`;

const sentenceOf = (kept: Kept, verdict: KeptVerdict, stretch: SeqRange, against: KeptAgainst): string => {
  const { file } = kept;
  if (kept.kind === 'tree' && kept.note.origin !== against.origin && against.origin !== null)
    return `${file} is of ${kept.note.origin}, and this is ${against.origin}: another journal.`;
  switch (verdict) {
    case 'cut':
      return `${file} knows this record, but the records end at ${against.headSeq}: the journal was put back to an older copy, or cut.`;
    case 'unreadable':
      return `${file} knows this record, and not all up to it can be read: whether they are what was written is not known.`;
    case 'rewritten':
      return stretch[0] === 0
        ? `${file} has another hash: this is another journal, or it was rewritten.`
        : `${file} has another hash: the chain was rewritten; ${stretchOf(stretch)} not what was written.`;
    default:
      return `${file} has the same hash, but its signature is not by ${against.keyPath}: the journal was signed again with another key.`;
  }
};

/** Looks at all of them, and names the first that the journal does not contain as what it is. */
export const checkKept = (
  files: readonly KeptFile[],
  against: KeptAgainst,
): { readonly results: readonly KeptResult[]; readonly findings: readonly Finding[] } => {
  const results: KeptResult[] = [];
  const findings: Finding[] = [];
  for (const one of files) {
    if (one.kind !== 'none') continue;
    results.push({ file: one.file, seq: null, verdict: 'unusable' });
    findings.push({ seq: null, what: one.problem });
  }
  /** The last record before the first difference that one vouches for, and the first that differs. */
  let soundSeq = 0;
  let firstBadSeq: number | null = null;
  const inOrder = files.filter((one) => one.kind !== 'none').sort((a, b) => a.seq - b.seq);
  for (const kept of inOrder) {
    const { file, seq } = kept;
    const verdict = verdictOf(kept, against);
    if (verdict === null) continue;
    results.push({ file, seq, verdict });
    if (verdict === 'rewritten') firstBadSeq ??= seq;
    // That there is no key is a finding of its own.
    if (verdict === 'contained' || verdict === 'unchecked') soundSeq = seq;
    else findings.push({ seq, what: sentenceOf(kept, verdict, [soundSeq, firstBadSeq ?? seq], against) });
  }
  return { results, findings };
};
