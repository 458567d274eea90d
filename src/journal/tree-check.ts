/**
 * Checks the tree over body_hash: what the check of the chain reads of each record is a leaf, and what they give is
 * compared with what is kept of the tree; tells its roots at the sizes that checkpoints name. Reads no records itself.
 */
import { existsSync } from 'node:fs';
import type { Finding, Stretch } from './chain-check.ts';
import type { Db } from './connect.ts';
import { HASH_BYTES } from './encoding.ts';
import { journalFiles } from './files.ts';
import { type KeptFile, readKept, treeSizes } from './kept-checkpoints.ts';
import { createLevels, createTile, hashesIn } from './tree-table.ts';

export interface TreeReport {
  readonly findings: readonly Finding[];
  /** Of the first record, which gives the tree its name; null in an empty journal. */
  readonly firstBodyHash: Uint8Array | null;
  /** Roots by the sizes that were asked for. */
  readonly roots: ReadonlyMap<number, Uint8Array>;
}

type KeptNode = readonly [level: bigint, n: bigint, hash: unknown];

/** What was kept of the tree before the records were looked at: what is kept later may be of some that are not. */
export interface TreeBefore {
  readonly nodes: readonly KeptNode[];
  /** The checkpoint of the tree that is beside the journal. */
  readonly beside: readonly KeptFile[];
  /** Sizes at which a checkpoint names a root. */
  readonly sizes: readonly number[];
}

/** What a stretch of records that begins with a tile gives of the tree. */
export interface TreePart {
  /** Of its first record. */
  readonly firstBodyHash: Uint8Array | null;
  /** Roots of its full tiles, one behind another. */
  readonly tileRoots: Uint8Array;
  /** By each size that was asked for: hashes of the leaves from the last full tile up to there, one behind another. */
  readonly begun: ReadonlyMap<number, Uint8Array>;
  /** False when a record is missing or has no hash to go by, which the check of the chain names. */
  readonly isWhole: boolean;
}

const keyOf = (level: number | bigint, n: number | bigint): string => `${level}/${n}`;

/** What is kept, whatever it is; a journal that is older than the tree keeps nothing. */
const readNodes = (db: Db): KeptNode[] => {
  const isThere = db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tree_nodes'").get();
  if (isThere === undefined) return [];
  return db.prepare<[], KeptNode>('SELECT level, n, hash FROM tree_nodes').raw().safeIntegers().all();
};

/** @param kept  checkpoints that are kept elsewhere */
export const readTreeBefore = (db: Db, path: string, kept: readonly KeptFile[]): TreeBefore => {
  const { note } = journalFiles(path);
  const beside = existsSync(note) ? [readKept(note)] : [];
  return { nodes: readNodes(db), beside, sizes: treeSizes([...beside, ...kept]) };
};

/** Takes the body_hash of every record of a stretch, in their order. The stretch begins with a tile. */
export const createTreePart = ({ fromSeq, toSeq }: Stretch, sizes: readonly number[]) => {
  const wanted = new Set(sizes);
  const tile = createTile();
  const tileRoots: Uint8Array[] = [];
  const begun = new Map<number, Uint8Array>();
  let firstBodyHash: Uint8Array | null = null;
  let next = fromSeq;
  return {
    /** One that does not follow on the one before is not taken, nor what comes behind it; its body_hash begins at `from`. */
    add: (seq: number, bytes: Buffer, from: number): void => {
      if (seq !== next) return;
      next = seq + 1;
      firstBodyHash ??= new Uint8Array(bytes.subarray(from, from + HASH_BYTES));
      const root = tile.add(bytes, from);
      if (root !== null) tileRoots.push(root);
      if (wanted.has(seq)) begun.set(seq, new Uint8Array(tile.waiting()));
    },
    part: (): TreePart => ({
      firstBodyHash,
      tileRoots: Buffer.concat(tileRoots),
      begun,
      isWhole: next > toSeq,
    }),
  };
};

/** @param parts  of the whole journal, in order; what lies behind one that is not whole is not looked at */
export const checkTree = ({ nodes }: Pick<TreeBefore, 'nodes'>, parts: readonly TreePart[]): TreeReport => {
  const findings: Finding[] = [];
  const find = (what: string): void => void findings.push({ seq: null, what });
  const kept = new Map(nodes.map(([level, n, hash]) => [keyOf(level, n), hash]));
  const roots = new Map<number, Uint8Array>();
  /** Levels of which one was missing: only the newest may be, since they are built behind the records. */
  const ended = new Set<number>();
  /** Levels of which something was found: one tells it, and what follows would fill pages. */
  const bad = new Set<number>();
  const levels = createLevels([], ({ level, n, hash }) => {
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
  const isWhole = parts.every(({ tileRoots, begun, isWhole: isPartWhole }) => {
    const noteRoots = (): void => {
      for (const [size, leaves] of begun)
        if (size - leaves.length / HASH_BYTES === levels.leaves()) roots.set(size, levels.rootWith(leaves));
    };
    for (const root of hashesIn(tileRoots)) {
      noteRoots();
      levels.add(root);
    }
    noteRoots();
    return isPartWhole;
  });
  const [extra] = kept.keys();
  if (isWhole && extra !== undefined) find(`The tree has a hash, ${extra}, that no records give.`);
  return { findings, firstBodyHash: parts[0]?.firstBodyHash ?? null, roots };
};
