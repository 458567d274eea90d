/** Shims that can't be stopped, and shims that don't answer: nobody waits for ever, and nobody is told what may not be so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerExitOf, containerStateOf } from '../../src/domain/model/container-state.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import { idOf, podConfig, reasonOf, type Rig, runContainer, runPod, startRig, task } from './rig.ts';

/** Its shim ended and is being cleared up; one container of it was made, `create` makes others. */
async function podOfStuckShim(
  StopShim: () => Promise<Record<string, never>>,
): Promise<{ rig: Rig; create: (name: string) => Promise<string> }> {
  const rig = await startRig({ perform: { StopShim } });
  await rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const config = { ...podConfig(), linux: { securityContext: { namespaceOptions: { pid: 1 } } } };
  const podSandboxId = idOf(await rig.call({ method: 'RunPodSandbox', config, runtimeHandler: '' }));
  const create = async (name: string): Promise<string> => {
    const container = { metadata: { name }, image: { image: 'registry.test/app:1' } };
    return idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config: container }));
  };
  await create('first');
  await rig.engine.observe({ kind: 'ShimLost', podSandboxId });
  return { rig, create };
}

test('a StartContainer behind a shim that cannot be stopped fails, and the next one starts when it can', async () => {
  let isStuck = true;
  const { rig, create } = await podOfStuckShim(async () => {
    if (isStuck) throw new FailureError('HostFailed', 'its bundle is busy.');
    return {};
  });
  const containerId = await create('second');
  const { outcome } = await rig.call({ method: 'StartContainer', containerId });
  assert.ok(!outcome.ok);
  assert.equal(outcome.failure.reason, 'ShimFailed');
  assert.match(outcome.failure.message, /could not be cleared up.*its bundle is busy/);
  const failed = rig.view.state.containers.get(containerId);
  assert.ok(failed !== undefined);
  assert.equal(containerStateOf(failed), 'CONTAINER_EXITED');
  assert.equal(containerExitOf(failed)?.reason, 'StartError');

  isStuck = false;
  await rig.advance(60_000);
  assert.equal(reasonOf(await rig.call({ method: 'StartContainer', containerId: await create('third') })), 'OK');
});

test('a StartContainer that waits while the shim is being stopped is told when that fails', async () => {
  const { promise, reject } = Promise.withResolvers<never>();
  const { rig, create } = await podOfStuckShim(() => promise);
  const containerId = await create('second');
  const reply = rig.call({ method: 'StartContainer', containerId });
  for (let i = 0; i < 5; i += 1) await rig.settle();
  assert.equal(rig.engine.state.calls.size, 1);
  reject(new FailureError('HostFailed', 'its bundle is busy.'));
  assert.equal(reasonOf(await reply), 'ShimFailed');
});

test('a start that waits while the shim is being stopped ends with its pod, also when it was told to stop before', {
  timeout: 20_000,
}, async () => {
  const { rig, create } = await podOfStuckShim(() => new Promise(() => undefined));
  const containerId = await create('second');
  const started = rig.call({ method: 'StartContainer', containerId });
  const stopped = rig.call({ method: 'StopContainer', containerId, timeoutSeconds: '0' });
  for (let i = 0; i < 5; i += 1) await rig.settle();
  const [podSandboxId = ''] = rig.view.state.sandboxes.keys();
  void rig.call({ method: 'StopPodSandbox', podSandboxId });
  assert.equal(reasonOf(await started), 'RuntimeFailed');
  assert.equal(reasonOf(await stopped), 'OK');
});

test('a container whose start was not answered is EXITED when what may run of it was ended, and not before', async () => {
  const { promise, resolve } = Promise.withResolvers<Record<string, never>>();
  const rig = await startRig({
    perform: {
      StartTask: async ({ podSandboxId, containerId }) => {
        if (containerId === podSandboxId) return task(11);
        throw new FailureError('TimedOut', 'The shim did not answer.');
      },
      DeleteTask: () => promise,
    },
  });
  await rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const podSandboxId = idOf(await rig.call(runPod()));
  const config = { metadata: { name: 'c' }, image: { image: 'registry.test/app:1' } };
  const containerId = idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  const started = rig.call({ method: 'StartContainer', containerId });
  for (let i = 0; i < 10; i += 1) await rig.settle();
  assert.ok(rig.performed.includes('DeleteTask'));
  assert.equal(containerExitOf(rig.view.state.containers.get(containerId)), null);
  resolve({});
  assert.equal(reasonOf(await started), 'TimedOut');
  assert.equal(containerExitOf(rig.view.state.containers.get(containerId))?.reason, 'StartError');
});

test('a container whose shim is mute is killed and removed without it, after its shim was asked three times', async () => {
  const deaf = async (): Promise<never> => {
    throw new FailureError('TimedOut', 'The shim did not answer.');
  };
  const rig = await startRig({ perform: { KillTask: deaf, ReconnectShim: deaf } });
  const { containerId } = await runContainer(rig);
  assert.equal(reasonOf(await rig.call({ method: 'RemoveContainer', containerId })), 'TimedOut');
  assert.ok(rig.view.state.containers.has(containerId));
  for (let i = 0; i < 20; i += 1) await rig.advance(5_000);
  assert.ok(!rig.view.state.containers.has(containerId));
  assert.ok(rig.performed.includes('DeleteTask'));
  assert.ok(rig.performed.filter((kind) => kind === 'ReconnectShim').length >= 3);
});

test('commands that a shim gave no answer to are ended when it speaks again, and not tried over and over before', async () => {
  let isDeaf = true;
  const whenItHears = async (): Promise<Record<string, never>> => {
    if (isDeaf) throw new FailureError('TimedOut', 'The shim did not answer.');
    return {};
  };
  const rig = await startRig({
    perform: {
      RunExec: async () => {
        throw new FailureError('TimedOut', 'The shim did not answer.');
      },
      EndExec: whenItHears,
      ReconnectShim: async ({ podSandboxId, containerIds }) => {
        await whenItHears();
        const running = { status: 'running', pid: 12, startTicks: '1' } as const;
        const tasks = [podSandboxId, ...containerIds].map((containerId) => ({ containerId, ...running }));
        return { gone: false, tasks };
      },
    },
  });
  const { podSandboxId, containerId } = await runContainer(rig);
  const probe = { method: 'ExecSync', containerId, cmd: ['true'], timeoutSeconds: '1' } as const;
  for (let i = 0; i < 20; i += 1) {
    assert.equal(reasonOf(await rig.call(probe)), 'TimedOut');
    await rig.advance(5_000);
  }
  assert.equal(rig.view.state.sandboxes.get(podSandboxId)?.shimContact, 'mute');
  const asked = (kind: string): number => rig.performed.filter((one) => one === kind).length;
  // Once at most, while it was being asked whether it is there.
  const endsBefore = asked('EndExec');
  assert.ok(endsBefore <= 1, `commands were to be ended ${endsBefore} times`);
  assert.ok(asked('ReconnectShim') <= 20, `it was asked ${asked('ReconnectShim')} times`);
  isDeaf = false;
  for (let i = 0; i < 20; i += 1) await rig.advance(5_000);
  assert.equal(rig.view.state.sandboxes.get(podSandboxId)?.shimContact, 'connected');
  assert.equal(asked('EndExec'), endsBefore + 20);
});
