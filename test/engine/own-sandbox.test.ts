/** Pods that their shim's own sandbox service holds: which effects follow from what, and what becomes of the pod. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { exitOf, idOf, podConfig, reasonOf, type Rig, startRig, task } from './rig.ts';

const runOwn: CallDraft = { method: 'RunPodSandbox', config: podConfig(), runtimeHandler: 'own' };
const stuck = (): never => {
  throw new FailureError('TimedOut', 'it does not stop');
};
const phaseOf = (rig: Rig, id: string) => rig.view.state.sandboxes.get(id)?.phase;

test('the sandbox takes the place of the pause task', async () => {
  const rig = await startRig({
    perform: { StartSandbox: async () => ({ ...task(11), platform: { os: 'linux', architecture: 'amd64' } }) },
  });
  const podSandboxId = idOf(await rig.call(runOwn));
  assert.deepEqual(rig.view.state.sandboxes.get(podSandboxId)?.platform, { os: 'linux', architecture: 'amd64' });
  assert.equal(reasonOf(await rig.call({ method: 'StopPodSandbox', podSandboxId })), 'OK');
  assert.equal(reasonOf(await rig.call({ method: 'RemovePodSandbox', podSandboxId })), 'OK');
  assert.deepEqual(
    rig.performed.filter((kind) => /Shim|Sandbox$|Task|Namespaces/.test(kind)),
    ['PreparePodSandbox', 'StartShim', 'StartSandbox', 'StopSandbox', 'StopShim', 'CleanPodSandbox'],
  );
});

test('C6: a sandbox that does not start is undone with its shim, whatever its undo says', async () => {
  const rig = await startRig({ perform: { StartSandbox: stuck, StopSandbox: stuck } });
  assert.equal(reasonOf(await rig.call(runOwn)), 'TimedOut');
  await rig.settle();
  assert.equal(rig.view.state.sandboxes.size, 0);
  assert.ok(rig.performed.includes('StopShim'));
});

test('a sandbox that does not stop ends with its shim, which is written down, and the call succeeds', async () => {
  const rig = await startRig({ perform: { StopSandbox: stuck } });
  const podSandboxId = idOf(await rig.call(runOwn));
  assert.equal(reasonOf(await rig.call({ method: 'StopPodSandbox', podSandboxId })), 'OK');
  assert.ok(rig.performed.indexOf('StopShim') > rig.performed.indexOf('StopSandbox'));
  assert.equal(rig.performed.filter((kind) => kind === 'StopSandbox').length, 1);
  assert.ok(rig.contents.rows.some(({ record }) => record?.body.includes('it does not stop')));
});

test('the end of the sandbox is the end of the pod, told once', async () => {
  const rig = await startRig();
  const podSandboxId = idOf(await rig.call(runOwn));
  assert.equal(phaseOf(rig, podSandboxId), 'ready');
  for (const status of [7, 8]) await rig.engine.observe(exitOf(podSandboxId, podSandboxId, status, 11));
  await rig.settle();
  assert.equal(phaseOf(rig, podSandboxId), 'notReady');
  const lost = rig.contents.rows.flatMap(({ record }) => (record?.type === 'sandbox.lost' ? [record.body] : []));
  assert.deepEqual(lost, ['{"message":"its sandbox ended with status 7"}']);
});

test('C19: after a restart the shim is asked for its sandbox, and one that it does not know is lost', async () => {
  const first = await startRig();
  const podSandboxId = idOf(await first.call(runOwn));
  const asked: (number | undefined)[] = [];
  const rig = await startRig({
    contents: first.contents,
    perform: {
      ReconnectShim: async ({ sandboxPid }) => {
        asked.push(sandboxPid);
        return { gone: false, tasks: [{ containerId: podSandboxId, status: 'absent', pid: 0 }] };
      },
    },
  });
  await rig.settle();
  assert.deepEqual(asked, [11]);
  assert.equal(phaseOf(rig, podSandboxId), 'notReady');
});

test('a sandbox that is no process of this node has containers, whose namespaces are for the shim to find', async () => {
  const paths: (string | undefined)[] = [];
  const rig = await startRig({
    perform: {
      StartSandbox: async () => ({ task: { pid: 0, startTicks: '0' } }),
      PrepareContainer: async ({ bundle: { spec } }) => {
        for (const { type, path } of spec.linux.namespaces) if (type !== 'network') paths.push(path);
        return { rootfs: [] };
      },
    },
  });
  await rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const podSandboxId = idOf(await rig.call(runOwn));
  const config = { metadata: { name: 'c' }, image: { image: 'registry.test/app:1' } };
  idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  assert.ok(paths.length >= 4);
  assert.deepEqual(new Set(paths), new Set([undefined]));
});
