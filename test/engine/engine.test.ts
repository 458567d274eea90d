/** What the engine promises of order and durability, one contract at a time; the simulator shows that they hold together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerStateOf, containerExitOf } from '../../src/domain/model/container-state.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import { workOwed } from '../../src/projections/work-owed.ts';
import { FACTS } from '../simulation/facts.ts';
import { IMAGE } from '../simulation/images.ts';
import { exitOf, idOf, podConfig, reasonOf, runContainer, runPod, startRig, task } from './rig.ts';

test('C1: nothing is seen, answered or begun before it is durable', async () => {
  let release: () => void = () => {};
  let holding = false;
  const rig = await startRig({
    commit: () => (holding ? new Promise((resolve) => (release = resolve)) : Promise.resolve()),
  });
  holding = true;
  let answered = false;
  const reply = rig.call({ method: 'UpdateRuntimeConfig', podCidr: '10.0.0.0/16' }).then(() => (answered = true));
  const pod = rig.call(runPod());
  await rig.settle();
  assert.equal(rig.engine.state.podCidr, '10.0.0.0/16');
  assert.equal(rig.view.state.podCidr, '');
  assert.equal(answered, false);
  assert.deepEqual(rig.performed, []);
  holding = false;
  release();
  await reply;
  assert.equal(rig.view.state.podCidr, '10.0.0.0/16');
  idOf(await pod);
});

test('C1: what was published counts as complete up to what is on its way to the disk', async () => {
  let release: () => void = () => {};
  let holding = false;
  const rig = await startRig({
    commit: () => (holding ? new Promise((resolve) => (release = resolve)) : Promise.resolve()),
  });
  const before = rig.engine.publishedUpToNs();
  holding = true;
  const reply = rig.call({ method: 'UpdateRuntimeConfig', podCidr: '10.0.0.0/16' });
  await rig.advance(1_000);
  assert.equal(rig.engine.publishedUpToNs(), before - 1n);
  holding = false;
  release();
  await reply;
  assert.equal(rig.engine.publishedUpToNs(), before + 1_000_000_000n);
});

test('C2: an effect begins after its intent is durable, and its result is durable before the reply', async () => {
  const intents: boolean[] = [];
  const rig = await startRig({
    perform: {
      AttachNetwork: async () => {
        intents.push(rig.contents.rows.some(({ record }) => record?.body.includes('"AttachNetwork"') ?? false));
        return { ips: ['10.0.0.9'], result: {} };
      },
    },
  });
  const podSandboxId = idOf(await rig.call(runPod()));
  assert.deepEqual(intents, [true]);
  assert.ok(
    rig.contents.rows.some(({ record }) => record?.type === 'sandbox.ready' && record.stream.endsWith(podSandboxId)),
  );
  assert.deepEqual(rig.view.state.sandboxes.get(podSandboxId)?.ips, ['10.0.0.9']);
});

test('C3: an exit is written down once, however often it is told', async () => {
  const rig = await startRig();
  const { podSandboxId, containerId } = await runContainer(rig);
  await Promise.all([3, 3, 4].map((status) => rig.engine.observe(exitOf(podSandboxId, containerId, status))));
  await rig.engine.observe(exitOf(podSandboxId, containerId, 5, 999));
  await rig.settle();
  const exits = rig.contents.rows.filter(({ record }) => record?.type === 'container.exited');
  assert.equal(exits.length, 1);
  assert.equal(containerExitOf(rig.view.state.containers.get(containerId))?.exitStatus, 3);
});

test('C4: a stop with grace 0 overtakes one that waits', async () => {
  const signals: number[] = [];
  const rig = await startRig({
    perform: {
      KillTask: async ({ signal }) => {
        signals.push(signal);
        return { alreadyGone: false };
      },
    },
  });
  const { podSandboxId, containerId } = await runContainer(rig);
  const patient = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '30' });
  await rig.settle();
  const hasty = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '0' });
  await rig.settle();
  assert.deepEqual(signals, [15, 9]);
  await rig.engine.observe(exitOf(podSandboxId, containerId, 137));
  assert.equal(reasonOf(await patient), 'OK');
  assert.equal(reasonOf(await hasty), 'OK');
});

test('C5: a cancelled creation runs on; the same call joins it or gets the finished id, another config is refused', async () => {
  let attached: () => void = () => {};
  const rig = await startRig({
    perform: {
      AttachNetwork: () => new Promise((resolve) => (attached = () => resolve({ ips: [], result: {} }))),
    },
  });
  const abort = new AbortController();
  const first = rig.call(runPod(), abort.signal);
  await rig.settle();
  abort.abort();
  const joined = rig.call(runPod());
  await rig.settle();
  attached();
  const id = idOf(await joined);
  assert.equal(idOf(await first), id);
  assert.equal(idOf(await rig.call(runPod())), id);
  const other = await rig.call({
    method: 'RunPodSandbox',
    config: { ...podConfig(), hostname: 'other' },
    runtimeHandler: '',
  });
  assert.equal(reasonOf(other), 'NameTaken');
  assert.equal(rig.view.state.sandboxes.size, 1);
});

test('C5: what nobody claims within two minutes is undone', async () => {
  let attached: () => void = () => {};
  const rig = await startRig({
    perform: { AttachNetwork: () => new Promise((resolve) => (attached = () => resolve({ ips: [], result: {} }))) },
  });
  const abort = new AbortController();
  void rig.call(runPod(), abort.signal);
  await rig.settle();
  abort.abort();
  attached();
  await rig.settle();
  assert.equal(rig.view.state.sandboxes.size, 1);
  await rig.advance(121_000);
  // The pause task is killed first; its exit comes as any other.
  const [podSandboxId = ''] = rig.view.state.sandboxes.keys();
  await rig.engine.observe(exitOf(podSandboxId, podSandboxId, 137, 11));
  await rig.advance(10);
  assert.equal(rig.view.state.sandboxes.size, 0);
  assert.ok(rig.performed.includes('DetachNetwork'));
});

test('C5: a pod that is only given to a client who has gone is undone as well', async () => {
  const pulls: (() => void)[] = [];
  const rig = await startRig({
    facts: { ...FACTS, sandboxImage: 'registry.test/app:1' },
    perform: { PullImage: () => new Promise((resolve) => pulls.push(() => resolve({ image: IMAGE }))) },
  });
  const aborts = [new AbortController(), new AbortController()];
  const replies = aborts.map(({ signal }) => rig.call(runPod(), signal));
  await rig.settle();
  for (const abort of aborts) abort.abort();
  await rig.settle();
  // The second is at the image while the first makes the pod.
  for (const pulled of pulls) {
    pulled();
    for (let turns = 0; turns < 5; turns += 1) await rig.settle();
  }
  const [one = '', other] = (await Promise.all(replies)).map(idOf);
  assert.equal(one, other);
  await rig.advance(121_000);
  await rig.engine.observe(exitOf(one, one, 137, 11));
  await rig.advance(10);
  assert.equal(rig.view.state.sandboxes.size, 0);
});

test('C6: undo derives from intents, goes on past failures, and what is owed is listed and tried again', async () => {
  const rig = await startRig({
    perform: {
      AttachNetwork: async () => {
        throw new FailureError('CniFailed', 'The plugin took an address and failed.');
      },
      DetachNetwork: async () => {
        throw new FailureError('CniFailed', 'The plugin is gone.');
      },
    },
  });
  assert.equal(reasonOf(await rig.call(runPod())), 'CniFailed');
  const [podSandboxId = ''] = rig.view.state.sandboxes.keys();
  await rig.engine.observe(exitOf(podSandboxId, podSandboxId, 137, 11));
  for (let i = 0; i < 5; i += 1) await rig.settle();
  assert.ok(rig.performed.includes('DetachNetwork'));
  assert.ok(rig.performed.includes('RemoveNetns'));
  const [owed] = workOwed(rig.view.state);
  assert.deepEqual(owed?.steps, ['network']);
  const [sandbox] = rig.view.state.sandboxes.values();
  assert.equal(sandbox?.phase, 'notReady');
  assert.equal(reasonOf(await rig.call(runPod())), 'NameTaken');

  const second = await startRig({
    contents: rig.contents,
    perform: { AttachNetwork: async () => ({ ips: [], result: {} }) },
  });
  for (let i = 0; i < 5; i += 1) await second.settle();
  assert.deepEqual(workOwed(second.view.state), []);
  assert.equal(second.view.state.sandboxes.size, 0);
});

test('C7: a failed commit is fatal, and answers nobody', async () => {
  let failing = false;
  const rig = await startRig({ commit: () => (failing ? Promise.reject(new Error('EIO')) : Promise.resolve()) });
  failing = true;
  let answered = false;
  void rig.call(runPod()).then(() => (answered = true));
  await rig.settle();
  assert.match(rig.errors[0]?.message ?? '', /EIO/);
  assert.equal(answered, false);
  assert.deepEqual(rig.performed, []);
});

test('C7: on a full disk only stopping and removing pass', async () => {
  let full = false;
  const rig = await startRig({ diskIsFull: () => full });
  const { podSandboxId, containerId } = await runContainer(rig);
  full = true;
  const before = rig.contents.rows.length;
  const refused = await rig.call(runPod('other'));
  assert.deepEqual([reasonOf(refused), refused.unrecorded], ['DiskFull', true]);
  assert.equal(rig.contents.rows.length, before);
  const stopped = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '0' });
  await rig.settle();
  await rig.engine.observe(exitOf(podSandboxId, containerId, 137));
  assert.equal(reasonOf(await stopped), 'OK');
  assert.equal(reasonOf(await rig.call({ method: 'RemoveContainer', containerId })), 'OK');
});

test('C7: a step that meets a full disk, without a word of its own for it, fails as one does that has', async () => {
  for (const code of ['ENOSPC', 'EDQUOT']) {
    const error = Object.assign(new Error(`${code}: no room, mkdir '/containers/1'`), { code });
    const rig = await startRig({ perform: { PreparePodSandbox: () => Promise.reject(error) } });
    const { outcome } = await rig.call(runPod());
    assert.deepEqual(outcome, {
      ok: false,
      failure: { reason: 'DiskFull', message: `PreparePodSandbox: ${error.message}` },
    });
  }
});

test('C18: a task found dead lists as EXITED at once, and its code is the one the shim tells', async () => {
  const rig = await startRig();
  const { containerId } = await runContainer(rig);
  let tell: () => void = () => {};
  const exit = { pid: 12, exitStatus: 7, exitedAtNs: '1800000000000000005', oomKills: 0 };
  const second = await startRig({
    contents: rig.contents,
    deadTasks: [containerId],
    perform: {
      ReconnectShim: () =>
        new Promise((resolve) => {
          tell = () => resolve({ gone: false, tasks: [{ containerId, status: 'stopped', pid: 12, exit }] });
        }),
    },
  });
  const container = () => second.view.state.containers.get(containerId);
  const found = container();
  assert.ok(found !== undefined);
  assert.equal(containerStateOf(found), 'CONTAINER_EXITED');
  assert.equal(containerExitOf(found), null);
  tell();
  for (let i = 0; i < 3; i += 1) await second.settle();
  assert.equal(containerExitOf(container())?.exitStatus, 7);
  await second.engine.observe({ ...exitOf('', containerId, 9) });
  assert.equal(containerExitOf(container())?.exitStatus, 7);
});

test('C19: after a crash creations are undone, and a start is finished or failed by what its shim says', async () => {
  const hang = (): Promise<never> => new Promise(() => {});
  const rig = await startRig({ perform: { AttachNetwork: hang } });
  void rig.call(runPod());
  await rig.settle();
  const second = await startRig({ contents: rig.contents });
  for (let i = 0; i < 5; i += 1) await second.settle();
  assert.equal(second.view.state.sandboxes.size, 0);
  assert.ok(second.performed.includes('DetachNetwork'));

  for (const [status, expected] of [
    ['running', 'CONTAINER_RUNNING'],
    ['absent', 'CONTAINER_EXITED'],
  ] as const) {
    const third = await startRig({
      perform: {
        StartTask: ({ containerId, podSandboxId }) =>
          containerId === podSandboxId ? Promise.resolve(task(11)) : hang(),
      },
    });
    await third.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
    const podSandboxId = idOf(await third.call(runPod()));
    const config = { metadata: { name: 'c' }, image: { image: 'registry.test/app:1' } };
    const containerId = idOf(await third.call({ method: 'CreateContainer', podSandboxId, config }));
    void third.call({ method: 'StartContainer', containerId });
    await third.settle();
    const fourth = await startRig({
      contents: third.contents,
      perform: {
        ReconnectShim: async () => ({
          gone: false,
          tasks: [
            { containerId: podSandboxId, status: 'running', pid: 11, startTicks: '11' },
            { containerId, status, pid: 12, startTicks: '12' },
          ],
        }),
      },
    });
    for (let i = 0; i < 5; i += 1) await fourth.settle();
    const container = fourth.view.state.containers.get(containerId);
    assert.ok(container !== undefined);
    assert.equal(containerStateOf(container), expected);
    if (status === 'absent') assert.equal(containerExitOf(container)?.reason, 'StartError');
  }
});
