/** A thousand ExecSync at once, as after a pause of the node, when all probes are due. Runs alone: it takes the whole machine. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { runPod } from '../support/pods.ts';

const COUNT = 1000;

describe('many ExecSync at once', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let containerIds: readonly string[];

  before(async () => {
    node = await startNode(owner);
    const pods = await Promise.all(
      [1, 2].map((number) => runPod(node.daemon, `many-${number}`, busyboxName, ['sleep', '1000'], {}, owner)),
    );
    containerIds = pods.map((pod) => pod.containerId);
  });

  test('all succeed, with the output of each', async () => {
    const { runtime } = node.daemon.cri;
    const replies = await Promise.all(
      Array.from({ length: COUNT }, async (_, index) => {
        const containerId = containerIds[index % containerIds.length];
        return runtime.execSync(
          { containerId, cmd: ['echo', `number ${index}`], timeout: '120' },
          { timeoutMs: 240_000 },
        );
      }),
    );
    const said = replies.map(({ stdout, exitCode }) => `${stdout.toString().trim()}, ${exitCode}`);
    assert.deepEqual(
      said,
      Array.from({ length: COUNT }, (_, index) => `number ${index}, 0`),
    );
  });
});
