/**
 * Checks the tree over body_hash: computes it anew from the records, compares what is kept of it, and tells its roots at
 * the sizes that checkpoints name. Reads in pages, so it may run beside a writer.
 */
import { existsSync } from 'node:fs';
import type { Finding } from './chain-check.ts';
import type { Db } from './connect.ts';
import { HASH_BYTES } from './encoding.ts';
import { journalFiles } from './files.ts';
import { type KeptFile, readKept, treeSizes } from './kept-checkpoints.ts';
import { createFrontier } from './tree-table.ts';

export interface TreeReport {
  readonly findings: readonly Finding[];
  /** Of the first record, which gives the tree its name; null in an empty journal. */
  readonly firstBodyHash: Uint8Array | null;
  /** Roots by the sizes that were asked for. */
  readonly roots: ReadonlyMap<number, Uint8Array>;
  /** The checkpoint of the tree that is beside the journal, as it was before the records were looked at. */
  readonly beside: readonly KeptFile[];
}

type Tree = Omit<TreeReport, 'beside'>;

const pageRows = 4096;

type Node = readonly [level: bigint, n: bigint, hash: unknown];

const keyOf = (level: number | bigint, n: number | bigint): string => `${level}/${n}`;

/** What is kept, whatever it is; a journal that is older than the tree keeps nothing. */
const readNodes = (db: Db): Node[] => {
  const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tree_nodes'").get();
  if (isThere === undefined) return [];
  return db.prepare<[], Node>('SELECT level, n, hash FROM tree_nodes').raw().safeIntegers().all();
};

/** @param wanted  sizes whose root somebody wants to compare with something */
const readTree = (db: Db, wanted: ReadonlySet<number>): Tree => {
  const findings: Finding[] = [];
  const find = (what: string): void => void findings.push({ seq: null, what });
  // Before the records: what is kept later may be of some that are not looked at.
  const kept = new Map(readNodes(db).map(([level, n, hash]) => [keyOf(level, n), hash]));
  const roots = new Map<number, Uint8Array>();
  /** Levels of which one was missing: only the newest may be, since they are built behind the records. */
  const ended = new Set<number>();
  /** Levels of which something was found: one tells it, and what follows would fill pages. */
  const bad = new Set<number>();
  const frontier = createFrontier([], ({ level, n, hash }) => {
    const key = keyOf(level, n);
    const stored = kept.get(key);
    if (stored === undefined) return void ended.add(level);
    kept.delete(key);
    const isRight = stored instanceof Uint8Array && Buffer.from(hash).equals(stored);
    if (bad.has(level) || (isRight && !ended.has(level))) return;
    bad.add(level);
    if (!isRight) find(`Hash ${n} of level ${level} of the tree is not what the records give.`);
    else find(`The tree lacks hashes of level ${level} before ${n}.`);
  });
  // As one text: a Buffer of its own for each hash would take longer than hashing.
  const page = db
    .prepare<[number, number], [count: number, whole: number, hashes: string | null]>(
      `SELECT count(*), total(typeof(body_hash) = 'blob' AND length(body_hash) = ${HASH_BYTES}),
         group_concat(hex(body_hash), '')
       FROM (SELECT body_hash FROM records WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ${pageRows})`,
    )
    .raw();
  const headSeq = db.prepare<[], number>('SELECT coalesce(max(seq), 0) FROM records').pluck().get() ?? 0;
  let firstBodyHash: Uint8Array | null = null;
  for (;;) {
    const [count, whole, text] = page.get(frontier.size(), headSeq) ?? [0, 0, null];
    // The chain's check names what is none.
    if (whole < count) return { findings, firstBodyHash, roots };
    const hashes = Buffer.from(text ?? '', 'hex');
    for (let at = 0; at < hashes.length; at += HASH_BYTES) {
      const bodyHash = hashes.subarray(at, at + HASH_BYTES);
      firstBodyHash ??= bodyHash;
      frontier.add(bodyHash);
      if (wanted.has(frontier.size())) roots.set(frontier.size(), frontier.root());
    }
    if (count < pageRows) break;
  }
  const [extra] = kept.keys();
  if (extra !== undefined) find(`The tree has a hash, ${extra}, that no records give.`);
  return { findings, firstBodyHash, roots };
};

/** Checks the tree of the journal at `path`, and notes its roots where these files, or the one beside it, name them. */
export const checkTree = (db: Db, path: string, kept: readonly string[]): TreeReport => {
  const { note } = journalFiles(path);
  const beside = existsSync(note) ? [readKept(note)] : [];
  return { ...readTree(db, new Set(treeSizes([...beside, ...kept.map(readKept)]))), beside };
};
