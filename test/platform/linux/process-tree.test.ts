/** Which processes come from one: by parents, and by sessions, which outlive them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { treeOf } from '../../../src/platform/linux/process-tree.ts';

const stat = (pid: number, parentPid: number, session: number) => ({ pid, parentPid, session });
const pidsOf = (root: number, table: ReturnType<typeof stat>[], related?: ReadonlySet<number>): number[] =>
  treeOf(root, table, related).map(({ pid }) => pid);

describe('treeOf', () => {
  it('has children and their children, in whichever order they are listed', () => {
    assert.deepEqual(pidsOf(20, [stat(22, 21, 20), stat(21, 20, 20), stat(20, 5, 20), stat(30, 5, 30)]), [22, 21, 20]);
  });

  it('has what was handed to another parent but is in a session that began below the root', () => {
    const table = [stat(1, 0, 1), stat(20, 5, 20), stat(21, 1, 20), stat(22, 20, 22), stat(23, 1, 22), stat(24, 1, 24)];
    assert.deepEqual(pidsOf(20, table), [20, 21, 22, 23]);
  });

  it('has nobody who shares the session that the root was started in', () => {
    assert.deepEqual(pidsOf(20, [stat(1, 0, 1), stat(20, 1, 1), stat(21, 1, 1), stat(22, 20, 1)]), [20, 22]);
  });

  it('has what is known to be related, with what came from it', () => {
    assert.deepEqual(pidsOf(20, [stat(20, 5, 20), stat(31, 1, 31), stat(32, 31, 31)], new Set([31])), [20, 31, 32]);
  });

  it('is nothing without its root', () => {
    assert.deepEqual(pidsOf(20, [stat(21, 20, 20)], new Set([21])), []);
  });
});
