/**
 * Holds a journal against checkpoints that an auditor kept where whoever owns this machine cannot change them. One alone
 * tells that the journal is another; several tell where it began to be. Says what each of them shows; computes no chain.
 */
import { existsSync } from 'node:fs';
import type { KeyObject } from 'node:crypto';
import type { Finding } from './chain-check.ts';
import { type Checkpoint, isSigned, readHeadFile } from './checkpoints.ts';
import type { SeqRange } from './types.ts';

/**
 * What a kept checkpoint says of the journal. contained: it holds that record, and its key signed. resigned: it holds it,
 * but another key signed then. cut: it ends before it. rewritten: it has another record there, or one before it.
 */
export type KeptVerdict = 'contained' | 'resigned' | 'cut' | 'rewritten' | 'unusable';

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
  /** The chain's hashes, as they were computed, at the seqs that were asked for. */
  readonly hashes: ReadonlyMap<number, Uint8Array>;
  /** The key that must have signed, and where it is; null when there is none. */
  readonly key: KeyObject | null;
  readonly keyPath: string;
}

type Kept = { readonly file: string } & ({ readonly checkpoint: Checkpoint } | { readonly problem: string });

const readKept = (file: string): Kept => {
  if (!existsSync(file)) return { file, problem: `${file} is missing.` };
  const checkpoint = readHeadFile(file);
  if (checkpoint === null) return { file, problem: `${file} is missing.` };
  return typeof checkpoint === 'string' ? { file, problem: checkpoint } : { file, checkpoint };
};

/** The records that kept checkpoints know: their hashes are what the check of the chain has to come back with. */
export const keptSeqs = (files: readonly string[]): number[] =>
  files.map(readKept).flatMap((kept) => ('checkpoint' in kept ? [kept.checkpoint.seq] : []));

/** null: it was appended since the chain was read, and is the next check's. */
const verdictOf = (checkpoint: Checkpoint, against: KeptAgainst): KeptVerdict | null => {
  const { headSeq, newestSeq, hashes, key } = against;
  const { seq, hash } = checkpoint;
  if (seq > headSeq) return seq > newestSeq ? 'cut' : null;
  const known = hashes.get(seq);
  if (known === undefined || !Buffer.from(known).equals(hash)) return 'rewritten';
  return key !== null && isSigned(key, checkpoint) ? 'contained' : 'resigned';
};

/** From the last record that a kept checkpoint vouches for to the one that differs: what is not as it was. */
const stretchOf = ([soundSeq, badSeq]: SeqRange): string =>
  soundSeq + 1 === badSeq ? `record ${badSeq} is` : `of records ${soundSeq + 1} to ${badSeq} at least one is`;

const sentenceOf = (file: string, verdict: KeptVerdict, stretch: SeqRange, against: KeptAgainst): string => {
  switch (verdict) {
    case 'cut':
      return `${file} knows this record, but the records end at ${against.headSeq}: the journal was put back to an older copy, or cut.`;
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
  files: readonly string[],
  against: KeptAgainst,
): { readonly results: readonly KeptResult[]; readonly findings: readonly Finding[] } => {
  const results: KeptResult[] = [];
  const findings: Finding[] = [];
  const kept = files.map(readKept);
  const inOrder = kept
    .flatMap((one) => ('checkpoint' in one ? [one] : []))
    .sort((a, b) => a.checkpoint.seq - b.checkpoint.seq);
  for (const one of kept) {
    if (!('problem' in one)) continue;
    results.push({ file: one.file, seq: null, verdict: 'unusable' });
    findings.push({ seq: null, what: one.problem });
  }
  /** The last record before the first difference that one vouches for, and the first that differs. */
  let soundSeq = 0;
  let firstBadSeq: number | null = null;
  for (const { file, checkpoint } of inOrder) {
    const { seq } = checkpoint;
    const verdict = verdictOf(checkpoint, against);
    if (verdict === null) continue;
    results.push({ file, seq, verdict });
    if (verdict === 'contained') soundSeq = seq;
    if (verdict === 'rewritten') firstBadSeq ??= seq;
    if (verdict !== 'contained')
      findings.push({ seq, what: sentenceOf(file, verdict, [soundSeq, firstBadSeq ?? seq], against) });
  }
  return { results, findings };
};
