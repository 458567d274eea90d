/** The tree from parts: whatever the stretches and sizes, the roots are those of the whole tree, computed otherwise. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GENESIS, sha256 } from '../../src/journal/encoding.ts';
import { createTree, leafHash, rootOf, TILE_WIDTH } from '../../src/journal/merkle.ts';
import { checkTree, createTreePart, type TreePart } from '../../src/journal/tree-check.ts';

const bodyHashOf = (seq: number): Buffer => sha256(Buffer.from(`record ${seq}`));

const partOf = (fromSeq: number, toSeq: number, sizes: readonly number[], missing?: number): TreePart => {
  const tree = createTreePart({ fromSeq, toSeq, previousHash: GENESIS }, sizes);
  for (let seq = fromSeq; seq <= toSeq; seq++) if (seq !== missing) tree.add(seq, bodyHashOf(seq), 0);
  return tree.part();
};

const leaves = Array.from({ length: 3 * TILE_WIDTH }, (_, index) => leafHash(bodyHashOf(index + 1)));
const tileOf = (level: number, n: number, width: number): readonly Uint8Array[] =>
  level === 0
    ? leaves.slice(n * TILE_WIDTH, n * TILE_WIDTH + width)
    : Array.from({ length: width }, (_, index) => rootOf(tileOf(0, n * TILE_WIDTH + index, TILE_WIDTH)));
const whole = createTree(tileOf);

test('parts give the roots of the whole tree at every size that is asked for', () => {
  const count = fc.integer({ min: 1, max: leaves.length });
  fc.assert(
    fc.property(count, fc.integer({ min: 0, max: 2 }), fc.array(count), (toSeq, tiles, sizes) => {
      const middle = Math.min(tiles * TILE_WIDTH, toSeq);
      const parts =
        middle === 0 || middle === toSeq
          ? [partOf(1, toSeq, sizes)]
          : [partOf(1, middle, sizes), partOf(middle + 1, toSeq, sizes)];
      const { findings, firstBodyHash, roots } = checkTree({ nodes: [] }, parts);
      assert.deepEqual(findings, []);
      assert.deepEqual(Buffer.from(firstBodyHash ?? []), bodyHashOf(1));
      const known = sizes.filter((size) => size <= toSeq);
      assert.deepEqual(new Set(roots.keys()), new Set(known));
      for (const [size, root] of roots) assert.deepEqual(Buffer.from(root), Buffer.from(whole.root(size)), `${size}`);
    }),
    { numRuns: 200 },
  );
});

test('behind a record that is missing no root is told, and what is kept of the tree there is not blamed', () => {
  const [first, second, third] = [1, 2, 3].map((n) => rootOf(leaves.slice((n - 1) * TILE_WIDTH, n * TILE_WIDTH)));
  const nodes = [first, second, third].map((hash, n) => [1n, BigInt(n), Buffer.from(hash ?? [])] as const);
  const sizes = [10, TILE_WIDTH + 5, leaves.length];
  const rootsWithout = (missing?: number): number[] => {
    const parts = [partOf(1, TILE_WIDTH, sizes, missing), partOf(TILE_WIDTH + 1, leaves.length, sizes, missing)];
    const { findings, roots } = checkTree({ nodes }, parts);
    assert.deepEqual(findings, []);
    return [...roots.keys()];
  };
  assert.deepEqual(rootsWithout(), sizes);
  assert.deepEqual(rootsWithout(TILE_WIDTH - 1), [10]);
  assert.deepEqual(rootsWithout(TILE_WIDTH + 7), [10, TILE_WIDTH + 5]);
});
