/**
 * The tree over body_hash on disk: the writer builds it behind the records, a slice at a time, and whoever reads a journal
 * asks for its tiles. What is not built yet, or never was since the journal is old, is computed from the records.
 */
import type { Db } from './connect.ts';
import { JournalError } from './errors.ts';
import { leafHash, rootOf, rootOfFrontier, TILE_WIDTH, type TileOf } from './merkle.ts';

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

/**
 * The levels of a tree that grows at its end: of each the hashes that fill no tile yet. `full` hears of every tile that
 * becomes full.
 */
export const createFrontier = (levels: Uint8Array[][], full: (node: Node) => void) => {
  const counts = levels.map((_, level) =>
    levels.slice(level).reduceRight((sum, { length }) => sum * TILE_WIDTH + length, 0),
  );
  const add = (level: number, hash: Uint8Array): void => {
    const tile = (levels[level] ??= []);
    const n = counts[level] ?? 0;
    if (level > 0) full({ level, n, hash });
    counts[level] = n + 1;
    tile.push(hash);
    if (tile.length < TILE_WIDTH) return;
    levels[level] = [];
    add(level + 1, rootOf(tile));
  };
  return {
    add: (content: Uint8Array): void => add(0, leafHash(content)),
    size: (): number => counts[0] ?? 0,
    root: (): Uint8Array => rootOfFrontier(levels),
  };
};

/** What is on disk of every level and fills no tile, from level 1 up; level 0 begins behind it. */
const readLevels = (db: Db): Uint8Array[][] => {
  const count = db.prepare<[number], number>('SELECT coalesce(max(n) + 1, 0) FROM tree_nodes WHERE level = ?').pluck();
  const nodes = prepareNodes(db);
  const levels: Uint8Array[][] = [[]];
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
  const frontier = createFrontier(readLevels(db), (node) => waiting.push(node));

  return {
    size: frontier.size,
    root: frontier.root,
    advance: (recordsMax) => {
      const hashes = leaves.all(frontier.size(), recordsMax);
      hashes.forEach(frontier.add);
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
