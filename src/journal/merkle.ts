/**
 * The arithmetic of RFC 6962's Merkle tree, in tiles of 256 hashes as c2sp.org/tlog-tiles has them: roots and
 * proofs over whatever gives hashes of a tile. Pure; knows no records and no files.
 */
import { createHash, hash } from 'node:crypto';
import { HASH_BYTES } from './encoding.ts';

/** Hashes of a full tile. */
export const TILE_WIDTH = 256;
const TILE_HEIGHT = 8;

const leafInput = Buffer.alloc(1 + HASH_BYTES);
const nodeInput = Buffer.alloc(1 + 2 * HASH_BYTES);
nodeInput[0] = 1;

/** The root of a tree without leaves. */
const EMPTY_ROOT: Uint8Array = createHash('sha256').digest();

/** Hash of a leaf, whose content is itself a hash of 32 bytes. */
export const leafHash = (content: Uint8Array): Buffer => {
  leafInput.set(content, 1);
  return hash('sha256', leafInput, 'buffer');
};

/**
 * Writes a leaf's hash at `at`; its content begins at `from`. As text a digest costs a third of what a Buffer costs, and to copy
 * from a place less than to make a view of it: a tree has millions of them.
 */
export const writeLeafHash = (content: Buffer, from: number, target: Buffer, at: number): void => {
  content.copy(leafInput, 1, from, from + HASH_BYTES);
  target.write(hash('sha256', leafInput, 'binary'), at, 'latin1');
};

/** The root of a full tile, whose hashes lie one behind another; writes over them. */
export const rootOfTile = (tile: Buffer): Buffer => {
  for (let width = TILE_WIDTH; width > 1; width /= 2) {
    for (let pair = 0; pair < width / 2; pair++) {
      tile.copy(nodeInput, 1, 2 * pair * HASH_BYTES, 2 * (pair + 1) * HASH_BYTES);
      tile.write(hash('sha256', nodeInput, 'binary'), pair * HASH_BYTES, 'latin1');
    }
  }
  return Buffer.from(tile.subarray(0, HASH_BYTES));
};

const nodeHash = (left: Uint8Array, right: Uint8Array): Buffer => {
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + HASH_BYTES);
  return hash('sha256', nodeInput, 'buffer');
};

/** The largest power of two below n, which is at least 2: where RFC 6962 parts a tree. */
const splitOf = (n: number): number => {
  let split = 1;
  while (split * 2 < n) split *= 2;
  return split;
};

/** The root over hashes that stand for equally many leaves each; the last may stand for fewer. There is at least one. */
export const rootOf = (hashes: readonly Uint8Array[]): Uint8Array => {
  const [first] = hashes;
  if (first === undefined) throw new Error('A root is asked for over nothing.');
  if (hashes.length === 1) return first;
  const split = splitOf(hashes.length);
  return nodeHash(rootOf(hashes.slice(0, split)), rootOf(hashes.slice(split)));
};

/**
 * The root of a tree, given the hashes of the last tile of every level, from the leaves up, that are not in a full tile
 * yet; what is full is one hash of the level above.
 */
export const rootOfFrontier = (frontier: readonly (readonly Uint8Array[])[]): Uint8Array => {
  let rest: Uint8Array | null = null;
  for (const hashes of frontier) {
    const parts: readonly Uint8Array[] = rest === null ? hashes : [...hashes, rest];
    if (parts.length > 0) rest = rootOf(parts);
  }
  return rest ?? EMPTY_ROOT;
};

/** The first `width` hashes of tile n of a level: those of level 0 are leaf hashes, others roots of full tiles below. */
export type TileOf = (level: number, n: number, width: number) => readonly Uint8Array[];

/** How many hashes the tile has in a tree of that size; 0: it is not there. */
export const tileWidth = (level: number, n: number, size: number): number =>
  Math.max(0, Math.min(TILE_WIDTH, Math.floor(size / TILE_WIDTH ** level) - n * TILE_WIDTH));

/** Answers about a tree whose tiles are given; every leaf that is asked for must be among them. */
export const createTree = (tileOf: TileOf) => {
  /** Of 2 ** height leaves that begin at a multiple of that. */
  const perfect = (start: number, height: number): Uint8Array => {
    const level = Math.floor(height / TILE_HEIGHT);
    const first = start / TILE_WIDTH ** level;
    const within = first % TILE_WIDTH;
    const count = 2 ** (height % TILE_HEIGHT);
    return rootOf(tileOf(level, Math.floor(first / TILE_WIDTH), within + count).slice(within, within + count));
  };

  /** Root of `count` leaves from `start` on, as a part of a larger tree has it. */
  const range = (start: number, count: number): Uint8Array => {
    const height = Math.log2(count);
    if (Number.isInteger(height)) return perfect(start, height);
    const split = splitOf(count);
    return nodeHash(range(start, split), range(start + split, count - split));
  };

  const inclusion = (index: number, start: number, count: number): Uint8Array[] => {
    if (count === 1) return [];
    const split = splitOf(count);
    return index < split
      ? [...inclusion(index, start, split), range(start + split, count - split)]
      : [...inclusion(index - split, start + split, count - split), range(start, split)];
  };

  /** RFC 6962, 2.1.2: `isWhole` while the old tree is all of this part, whose root the verifier has then. */
  const consistency = (old: number, start: number, count: number, isWhole: boolean): Uint8Array[] => {
    if (old === count) return isWhole ? [] : [range(start, count)];
    const split = splitOf(count);
    return old <= split
      ? [...consistency(old, start, split, isWhole), range(start + split, count - split)]
      : [...consistency(old - split, start + split, count - split, false), range(start, split)];
  };

  return {
    root: (size: number): Uint8Array => (size === 0 ? EMPTY_ROOT : range(0, size)),
    /** That leaf `index` (from 0) is in the tree of `size` leaves. */
    inclusionProof: (index: number, size: number): Uint8Array[] => inclusion(index, 0, size),
    /** That the tree of `oldSize` leaves, at least one, is the beginning of that of `size`. */
    consistencyProof: (oldSize: number, size: number): Uint8Array[] => consistency(oldSize, 0, size, true),
  };
};

/** The root that an inclusion proof leads to: that of the tree, where the proof is right. */
export const rootOfInclusion = (
  leaf: Uint8Array,
  index: number,
  count: number,
  proof: readonly Uint8Array[],
): Uint8Array => {
  const last = proof.at(-1);
  if (count <= 1 || last === undefined) return leaf;
  const split = splitOf(count);
  const rest = proof.slice(0, -1);
  return index < split
    ? nodeHash(rootOfInclusion(leaf, index, split, rest), last)
    : nodeHash(last, rootOfInclusion(leaf, index - split, count - split, rest));
};
