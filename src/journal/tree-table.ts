/**
 * The tree over body_hash on disk: the writer builds it behind the records, a slice at a time, and whoever reads a journal
 * asks for its tiles. What is not built yet, or never was since the journal is old, is computed from the records.
 */
import type { Db } from './connect.ts';
import { HASH_BYTES } from './encoding.ts';
import { JournalError } from './errors.ts';
import { leafHash, rootOf, rootOfFrontier, rootOfTile, TILE_WIDTH, type TileOf, writeLeafHash } from './merkle.ts';

/** A hash that stands for a full tile of the level below. */
interface Node {
  readonly level: number;
  readonly n: number;
  readonly hash: Uint8Array;
}

export interface TreeBuilder {
  /** Leaves that are in the tree. */
  readonly size: () => number;
  readonly root: () => Uint8Array;
  /** Takes at most so many records that are on disk and not in the tree yet; returns whether there may be more. */
  readonly advance: (recordsMax: number) => boolean;
  /** Nodes that are complete and not on disk yet. */
  readonly waiting: () => number;
  /** Puts them there, within the caller's transaction. */
  readonly flush: () => void;
}

const hasTree = (db: Db): boolean =>
  db.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'tree_nodes'").get() !== undefined;

const prepareNodes = (db: Db) =>
  db
    .prepare<[number, number, number], Buffer>(
      'SELECT hash FROM tree_nodes WHERE level = ? AND n >= ? AND n < ? ORDER BY n',
    )
    .pluck();

const prepareLeaves = (db: Db) =>
  db.prepare<[number, number], Buffer>('SELECT body_hash FROM records WHERE seq > ? ORDER BY seq LIMIT ?').pluck();

/** Leaves that come one by one, a tile at a time. */
export const createTile = () => {
  const leaves = Buffer.alloc(TILE_WIDTH * HASH_BYTES);
  let waiting = 0;
  return {
    /** The tile's root, where the leaf whose content begins there makes it full; null otherwise. */
    add: (content: Buffer, from = 0): Buffer | null => {
      writeLeafHash(content, from, leaves, waiting * HASH_BYTES);
      waiting += 1;
      if (waiting < TILE_WIDTH) return null;
      waiting = 0;
      return rootOfTile(leaves);
    },
    /** Hashes of the leaves that fill no tile yet, one behind another, until the next leaf comes. */
    waiting: (): Uint8Array => leaves.subarray(0, waiting * HASH_BYTES),
  };
};

/** Hashes that lie one behind another. */
export const hashesIn = (bytes: Uint8Array): Uint8Array[] =>
  Array.from({ length: bytes.length / HASH_BYTES }, (_, index) =>
    bytes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES),
  );

/**
 * The levels above the leaves of a tree that grows at its end: of each the hashes that fill no tile yet. `full` hears of
 * every tile that becomes full, those of leaves among them.
 */
export const createLevels = (above: Uint8Array[][], full: (node: Node) => void) => {
  const counts = above.map((_, index) =>
    above.slice(index).reduceRight((sum, { length }) => sum * TILE_WIDTH + length, 0),
  );
  const addAbove = (level: number, hash: Uint8Array): void => {
    const tile = (above[level - 1] ??= []);
    const n = counts[level - 1] ?? 0;
    full({ level, n, hash });
    counts[level - 1] = n + 1;
    tile.push(hash);
    if (tile.length < TILE_WIDTH) return;
    above[level - 1] = [];
    addAbove(level + 1, rootOf(tile));
  };
  return {
    /** Takes the root of the next full tile of leaves. */
    add: (tileRoot: Uint8Array): void => addAbove(1, tileRoot),
    /** Leaves that are in full tiles. */
    leaves: (): number => (counts[0] ?? 0) * TILE_WIDTH,
    /** The tree's root, given the hashes of the leaves behind the full tiles. */
    rootWith: (waiting: Uint8Array): Uint8Array => Buffer.from(rootOfFrontier([hashesIn(waiting), ...above])),
  };
};

/** What is on disk of every level from 1 up and fills no tile. */
const readLevels = (db: Db): Uint8Array[][] => {
  const count = db.prepare<[number], number>('SELECT coalesce(max(n) + 1, 0) FROM tree_nodes WHERE level = ?').pluck();
  const nodes = prepareNodes(db);
  const levels: Uint8Array[][] = [];
  for (let level = 1; ; level++) {
    const end = count.get(level) ?? 0;
    if (end === 0) return levels;
    levels.push(nodes.all(level, end - (end % TILE_WIDTH), end));
  }
};

export const createTreeBuilder = (db: Db): TreeBuilder => {
  const insert = db.prepare('INSERT INTO tree_nodes (level, n, hash) VALUES (?, ?, ?)');
  const leaves = prepareLeaves(db);
  let waiting: Node[] = [];
  const levels = createLevels(readLevels(db), (node) => waiting.push(node));
  const tile = createTile();
  const size = (): number => levels.leaves() + tile.waiting().length / HASH_BYTES;

  return {
    size,
    root: () => levels.rootWith(tile.waiting()),
    advance: (recordsMax) => {
      const hashes = leaves.all(size(), recordsMax);
      for (const hash of hashes) {
        const root = tile.add(hash);
        if (root !== null) levels.add(root);
      }
      return hashes.length === recordsMax;
    },
    waiting: () => waiting.length,
    flush: () => {
      for (const { level, n, hash } of waiting) insert.run(level, n, hash);
      waiting = [];
    },
  };
};

export interface TreeReader {
  readonly tileOf: TileOf;
  /** The leaves' own content: body_hash of the `width` records behind record `first`. */
  readonly leaves: (first: number, width: number) => readonly Uint8Array[];
}

/** The tree of a journal that is only read. Throws JournalError Corrupt where records are missing. */
export const createTreeReader = (db: Db): TreeReader => {
  const nodes = hasTree(db) ? prepareNodes(db) : null;
  const select = prepareLeaves(db);

  const leaves: TreeReader['leaves'] = (first, width) => {
    const hashes = select.all(first, width);
    if (hashes.length === width) return hashes;
    throw new JournalError('Corrupt', `${db.name} lacks records behind ${first}: scribe verify says more.`);
  };

  const tileOf: TileOf = (level, n, width) => {
    const first = n * TILE_WIDTH;
    if (level === 0) return leaves(first, width).map(leafHash);
    const kept: Uint8Array[] = nodes?.all(level, first, first + width) ?? [];
    while (kept.length < width) kept.push(rootOf(tileOf(level - 1, first + kept.length, TILE_WIDTH)));
    return kept;
  };
  return { tileOf, leaves };
};
