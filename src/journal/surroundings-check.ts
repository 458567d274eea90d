/**
 * Checks what hangs on the chain: checkpoints and their signatures, the checkpoint beside the journal, what was pruned
 * and by which record, read segments and snapshots. Every column of every table is computed anew either here or in
 * chain-check.ts or own-tables-check.ts, so that no flipped bit goes unseen.
 */
import type { ChainPart, Finding } from './chain-check.ts';
import { isSigned, loadPublicKey, readCheckpoints, readHeadFile } from './checkpoints.ts';
import type { Db } from './connect.ts';
import { chunkRoot, GENESIS } from './encoding.ts';
import { journalFiles } from './files.ts';
import { createFindings, type Find, sameBytes } from './findings.ts';
import { checkKept, type KeptResult, readKept } from './kept-checkpoints.ts';
import { originOf } from './notes.ts';
import { JOURNAL_PRUNED, type Pruning, parsePruned } from './own-records.ts';
import { uncovered } from './ranges.ts';
import { CHUNKS_PER_SEGMENT, describeChunk, segmentsWithChunks } from './read-table.ts';
import { createReader } from './reader.ts';
import { isWholeSnapshot, type SnapshotRow } from './snapshot-table.ts';
import { checkTree, type TreeBefore, type TreePart } from './tree-check.ts';
import type { SealedSegment } from './types.ts';

export interface SurroundingsReport {
  readonly findings: readonly Finding[];
  readonly checkpoints: number;
  readonly snapshots: number;
  readonly readSegments: number;
  /** What kept checkpoints show, oldest first. */
  readonly against: readonly KeptResult[];
}

/** Files to go by besides those beside the journal. */
export interface KeptElsewhere {
  /** Checkpoints that the journal has to contain. */
  readonly against?: readonly string[] | undefined;
  /** The key that must have signed, in place of the journal's own. */
  readonly key?: string | undefined;
}

/** What the thread is asked for that looks at all of this. */
export interface SurroundingsTask {
  readonly kind: 'surroundings';
  readonly path: string;
  readonly headSeq: number;
  readonly parts: readonly ChainPart[];
  /** What of the tree was kept before the parts were checked, and what they give of it. */
  readonly treeBefore: TreeBefore;
  readonly treeParts: readonly TreePart[];
  readonly kept: KeptElsewhere;
}

/** What the parts of the chain found out together. */
interface Chain {
  readonly headSeq: number;
  readonly hashes: ReadonlyMap<number, Uint8Array>;
  readonly closed: ReadonlyMap<number, SealedSegment>;
  readonly parts: readonly ChainPart[];
  /** The first record that cannot be read; null: all can. */
  readonly unreadableFrom: number | null;
}

const firstUnreadable = (parts: readonly ChainPart[]): number | null => {
  const firsts = parts.flatMap(({ unreadable }) => unreadable?.fromSeq ?? []);
  return firsts.length === 0 ? null : Math.min(...firsts);
};

const checkCheckpoints = (db: Db, { path, kept }: SurroundingsTask, chain: Chain, find: Find): number => {
  const files = journalFiles(path);
  const keyPath = kept.key ?? files.key;
  const key = loadPublicKey(keyPath);
  const checkpoints = readCheckpoints(db, 0, Number.MAX_SAFE_INTEGER);
  if (key === null)
    find(
      null,
      `${keyPath} is missing or no key: signatures cannot be checked. Name the key with --key (of a backup its journal.vkey).`,
      { isUnchecked: true },
    );
  for (const checkpoint of checkpoints) {
    const { seq, hash } = checkpoint;
    if (key !== null && !isSigned(key, checkpoint)) find(seq, `the signature of the checkpoint is not by ${keyPath}.`);
    // Records that were appended since the check began are not this check's.
    const known = chain.hashes.get(seq);
    if (seq > chain.headSeq && seq > createReader(db).headSeq()) {
      find(seq, `there is a checkpoint, but the records end at ${chain.headSeq}: the journal was cut.`);
    } else if (known === undefined && seq >= (chain.unreadableFrom ?? Number.POSITIVE_INFINITY)) {
      // What it says of records that cannot be read nobody can hold against them.
      continue;
    } else if (seq <= chain.headSeq && (known === undefined || !sameBytes(hash, known))) {
      find(seq, 'its checkpoint has another hash: the chain was rewritten.');
    }
  }
  checkHeadFile(files.head, key, chain, db, find);
  return checkpoints.length;
};

const checkAgainst = (
  db: Db,
  { path, kept, treeBefore, treeParts }: SurroundingsTask,
  chain: Chain,
  find: Find,
): readonly KeptResult[] => {
  const tree = checkTree(treeBefore, treeParts);
  const keyPath = kept.key ?? journalFiles(path).key;
  const known = {
    headSeq: chain.headSeq,
    newestSeq: createReader(db).headSeq(),
    unreadableFrom: chain.unreadableFrom,
    hashes: chain.hashes,
    roots: tree.roots,
    origin: tree.firstBodyHash === null ? null : originOf(tree.firstBodyHash),
    key: loadPublicKey(keyPath),
    keyPath,
  };
  const beside = checkKept(treeBefore.beside, known);
  const { results, findings } = checkKept((kept.against ?? []).map(readKept), known);
  for (const { seq, what } of [...tree.findings, ...beside.findings, ...findings]) find(seq, what);
  return results;
};

type PublicKey = ReturnType<typeof loadPublicKey>;

const checkHeadFile = (path: string, key: PublicKey, chain: Chain, db: Db, find: Find): void => {
  const beside = readHeadFile(path);
  if (beside === null) return;
  if (typeof beside === 'string') return find(null, beside);
  const { seq, hash } = beside;
  if (key !== null && !isSigned(key, beside)) find(null, `The signature in ${path} is not by the journal's key.`);
  if (seq > chain.headSeq && seq > createReader(db).headSeq()) {
    return find(
      seq,
      `${path} knows this record, but the records end at ${chain.headSeq}: the journal was put back or cut.`,
    );
  }
  const known = chain.hashes.get(seq);
  if (known !== undefined && !sameBytes(hash, known)) find(seq, `${path} has another hash: the chain was rewritten.`);
};

/** Every prune record there is now: rows may have been pruned since the chain was read. */
const allPrunings = (db: Db, chain: Chain): Pruning[] => {
  const later = createReader(db).page({ types: [JOURNAL_PRUNED] }, chain.headSeq + 1, createReader(db).headSeq());
  return [...chain.parts.flatMap(({ prunings }) => prunings), ...later.records.map(parsePruned)];
};

const checkPruned = (chain: Chain, prunings: readonly Pruning[], find: Find): void => {
  const pruned = chain.parts.flatMap((part) => part.pruned);
  const allowed = prunings.flatMap(({ seqs }) => seqs);
  for (const [first, last] of uncovered(pruned, allowed)) {
    find(
      first,
      `${first === last ? 'it is' : `the records up to ${last} are`} pruned, but no ${JOURNAL_PRUNED} says so.`,
    );
  }
};

const checkChunks = (db: Db, segment: number, find: Find): SealedSegment => {
  const chunks = db
    .prepare<[number, number], [number, unknown, unknown]>(
      'SELECT id, rows, root FROM read_chunks WHERE id >= ? AND id < ? ORDER BY id',
    )
    .raw()
    .iterate(segment * CHUNKS_PER_SEGMENT, (segment + 1) * CHUNKS_PER_SEGMENT);
  let [count, fromNs, toNs] = [0, 2n ** 63n - 1n, 0n];
  let root: Uint8Array = GENESIS;
  let expected = 0;
  for (const [id, rows, stored] of chunks) {
    const chunk = id - segment * CHUNKS_PER_SEGMENT;
    if (chunk !== expected) find(null, `Read segment ${segment} lacks chunks ${expected} to ${chunk - 1}.`);
    expected = chunk + 1;
    if (!(rows instanceof Uint8Array) || !sameBytes(stored, chunkRoot(root, segment, chunk, rows))) {
      find(null, `Read segment ${segment}: chunk ${chunk} does not give its root.`);
    }
    root = stored instanceof Uint8Array ? stored : GENESIS;
    if (rows instanceof Uint8Array) {
      const described = describeRows(rows);
      count += described.count;
      if (described.fromNs < fromNs) fromNs = described.fromNs;
      if (described.toNs > toNs) toNs = described.toNs;
    }
  }
  return { segment, count, dropped: 0, fromNs, toNs, root };
};

/** A chunk that can't be decoded has a wrong root too, which is the finding. */
const describeRows = (rows: Uint8Array): Pick<SealedSegment, 'count' | 'fromNs' | 'toNs'> => {
  try {
    return describeChunk(rows);
  } catch {
    return { count: 0, fromNs: 0n, toNs: 0n };
  }
};

const checkReads = (db: Db, chain: Chain, prunings: readonly Pruning[], find: Find): number => {
  const dropped = new Set(prunings.flatMap(({ segments }) => segments));
  const present = new Map(segmentsWithChunks(db).map((segment) => [segment, checkChunks(db, segment, find)]));
  const rows = db.prepare<[], [number, number]>('SELECT segment, closed FROM read_segments').raw().all();
  const newestSeq = createReader(db).headSeq();
  for (const [segment, closed] of rows) {
    // Closed since the chain was read: the next check's business.
    if (closed > chain.headSeq && closed <= newestSeq) continue;
    const sealed = chain.closed.get(closed);
    if (sealed?.segment !== segment) find(closed, `Read segment ${segment} names it, but it does not close it.`);
    const sum = present.get(segment);
    if (sum === undefined && !dropped.has(segment))
      find(closed, `read segment ${segment} is gone, but not by pruning.`);
    if (sum !== undefined && sealed?.segment === segment && !isSameSegment(sum, sealed)) {
      find(closed, `read segment ${segment} is not the one that was closed: its rows give another root.`);
    }
  }
  const listed = new Set(rows.map(([segment]) => segment));
  for (const [seq, { segment }] of chain.closed) {
    if (!listed.has(segment)) find(seq, `it closes read segment ${segment}, which is not among the closed ones.`);
  }
  return present.size;
};

const isSameSegment = (sum: SealedSegment, sealed: SealedSegment): boolean =>
  sum.count === sealed.count &&
  sum.fromNs === sealed.fromNs &&
  sum.toNs === sealed.toNs &&
  sameBytes(sum.root, sealed.root);

/** Seqs that snapshots stand on. */
export const snapshotSeqs = (db: Db): number[] => db.prepare<[], number>('SELECT seq FROM snapshots').pluck().all();

const checkSnapshots = (db: Db, chain: Chain, find: Find): number => {
  let count = 0;
  for (const row of db.prepare<[], SnapshotRow>('SELECT * FROM snapshots').iterate()) {
    count++;
    if (!isWholeSnapshot(row, chain.hashes.get(row.seq) ?? null))
      find(row.seq, 'its snapshot is not what was written.');
  }
  return count;
};

/** Its parts are the checked chain, from record 1 to `headSeq`. */
export const checkSurroundings = (db: Db, task: SurroundingsTask): SurroundingsReport => {
  const { headSeq, parts } = task;
  const { findings, find, tried, checked, counted } = createFindings();
  const chain: Chain = {
    headSeq,
    parts,
    unreadableFrom: firstUnreadable(parts),
    hashes: new Map(parts.flatMap(({ hashes }) => [...hashes])),
    closed: new Map(parts.flatMap(({ closed }) => closed).map(({ seq, sealed }) => [seq, sealed])),
  };
  let prunings: readonly Pruning[] = [];
  checked('prune records', () => {
    prunings = allPrunings(db, chain);
    checkPruned(chain, prunings, find);
  });
  return {
    checkpoints: counted('checkpoints', () => checkCheckpoints(db, task, chain, find)),
    readSegments: counted('read segments', () => checkReads(db, chain, prunings, find)),
    snapshots: counted('snapshots', () => checkSnapshots(db, chain, find)),
    against: tried('kept checkpoints', [], () => checkAgainst(db, task, chain, find)),
    findings,
  };
};
