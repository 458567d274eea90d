/**
 * Shims that are kept when their pod has gone (kept_shims), with a real daemon: the next pod has the same one, what was
 * kept by a daemon that is killed is ended by the next, and pods that have one are as any.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { agreement } from '../support/agreement.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, ownPids, removePod, runPod } from '../support/pods.ts';

const owner = cleanupAfterAll();
let node: TestNode;
before(async () => {
  node = await startNode(owner, { keptShims: { max: 2, for: '4s' } });
});

type Pod = Awaited<ReturnType<typeof runPod>>;
const pod = (name: string): Promise<Pod> => runPod(node.daemon, name, busyboxName, ['sleep', '1000'], { pod: ownPids });
const shimOf = ({ podSandboxId }: Pod) => stateOf(node.daemon).sandboxes.get(podSandboxId)?.shim?.pid ?? assert.fail();
const shims = async (): Promise<readonly string[]> => (await node.daemon.leftovers()).shims;
const isToldStray = async (): Promise<boolean> =>
  (await node.daemon.scribe('doctor', '--json')).stdout.includes('no record explains');

test('the next pod has the shim of one that has gone, which is ended when none comes', async () => {
  const first = await pod('first');
  const pid = shimOf(first);
  await removePod(node.daemon, first.podSandboxId);
  const second = await pod('second');
  assert.equal(shimOf(second), pid);
  const { daemon } = node;
  const { stdout } = await daemon.cri.runtime.execSync({ containerId: second.containerId, cmd: ['hostname'] });
  assert.equal(stdout.toString().trim(), 'second');
  assert.equal(await isToldStray(), false);
  await removePod(daemon, second.podSandboxId);
  await eventually('nothing is left', async () => (await shims()).length === 0);
  assert.deepEqual(await daemon.leftovers(), noLeftovers);
});

test('C18 C19: a kill of the daemon leaves pods as they are, and no shim that none has', async () => {
  const { daemon } = node;
  const gone = [await pod('gone-a'), await pod('gone-b')] as const;
  await removePod(daemon, gone[0].podSandboxId);
  const heir = await pod('heir');
  // Stopped and not removed: it still says which shim it had.
  await daemon.cri.runtime.stopPodSandbox({ podSandboxId: gone[1].podSandboxId });
  await daemon.kill();
  await daemon.start();
  await eventually('one shim is left', async () => (await shims()).length === 1);
  assert.equal(await isToldStray(), false);
  await agreement(daemon);
  const { stdout } = await daemon.cri.runtime.execSync({ containerId: heir.containerId, cmd: ['hostname'] });
  assert.equal(stdout.toString().trim(), 'heir');
  // One whose StartShim nobody will hear of, or that was being started: whichever the kill meets.
  const interrupted = pod('interrupted').catch(() => null);
  await eventually('its shim is there', async () => (await shims()).length === 2);
  await daemon.kill();
  await interrupted;
  await daemon.start();
  for (const { id } of (await daemon.cri.runtime.listPodSandbox()).items) await removePod(daemon, id);
  await eventually('nothing is left', async () => (await shims()).length === 0);
  assert.deepEqual(await daemon.leftovers(), noLeftovers);
});

test('a daemon that is stopped ends what it had kept', async () => {
  const { daemon } = node;
  const last = await pod('last');
  await removePod(daemon, last.podSandboxId);
  assert.equal(await daemon.stop(), 0);
  assert.deepEqual(await daemon.leftovers(), noLeftovers);
  await daemon.start();
});
