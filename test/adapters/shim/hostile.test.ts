/** Shims that lie, keep silent, hang up or talk nonsense: they cost their own pod some time, and nobody else anything. */
import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isAlive } from '../../../src/platform/linux/processes.ts';
import { createTtrpcClient } from '../../../src/platform/ttrpc/client.ts';
import { encodeFrame, FrameType } from '../../../src/platform/ttrpc/frame.ts';
import { TaskExit, TaskOOM } from '../../../src/wire/events/task.ts';
import { EventsDefinition, ForwardRequest } from '../../../src/wire/services/ttrpc/events/v1/events.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import { withReason } from '../../support/failures.ts';
import { bounded, type FakeRig, openFakeRig, setMood } from './rig/fake.ts';
import { deleteOf, killOf, type Rig, openContext } from './rig/rig.ts';

describe('a shim that misbehaves', { timeout: 60_000 }, () => {
  let fake: FakeRig;
  let rig: Rig;

  before(async () => {
    fake = await openFakeRig();
    ({ rig } = fake);
  });
  after(() => fake.close());

  type Pod = Awaited<ReturnType<Rig['startPod']>>;
  const startTask = async (pod: Pod): Promise<EffectOf<'CreateTask'>> => {
    const one = await rig.container(pod.podSandboxId, { args: ['true'] }, { log: null });
    await rig.launch(one);
    return one;
  };
  const stop = ({ podSandboxId, bundlePath, shim }: Pod): Promise<unknown> =>
    rig.adapter.effects.StopShim(
      { kind: 'StopShim', podSandboxId, handler: rig.handler, bundlePath, shim },
      openContext(),
    );
  const reconnect = ({ podSandboxId, bundlePath, shim }: Pod, containerIds: readonly string[]) =>
    rig.adapter.effects.ReconnectShim(
      { kind: 'ReconnectShim', podSandboxId, bundlePath, shim, containerIds },
      openContext(),
    );
  const remove = (one: EffectOf<'CreateTask'>) => rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
  const kill = (one: EffectOf<'CreateTask'>) => rig.adapter.effects.KillTask(killOf(one), openContext());
  const deleted = async (): Promise<string[]> =>
    (await readFile(join(fake.dir, 'deleted'), 'utf8').catch(() => '')).split('\n');

  it('behaves well when it is told to: this is what the others are measured by', async () => {
    const pod = await rig.startPod();
    const one = await startTask(pod);
    await kill(one);
    const { exit } = await rig.observed('TaskExited', ({ containerId }) => containerId === one.containerId);
    assert.deepEqual([exit.exitStatus, exit.exitedAtNs], [137, '1700000000000000005']);
    await remove(one);
    await stop(pod);
    assert.equal(await isAlive(pod.shim), false);
  });

  it('is asked to create one task at a time: a second one would keep all other calls waiting', async () => {
    const pod = await rig.startPod();
    const tasks = await Promise.all([startTask(pod), startTask(pod), startTask(pod)]);
    for (const one of tasks) await remove(one);
    await stop(pod);
  });

  it('cannot have another process killed by lying about its pid', async () => {
    await writeFile(join(fake.dir, 'mood'), 'lying');
    await assert.rejects(rig.startPod(), /says that its pid is 1, which is no shim/);
    await rm(join(fake.dir, 'mood'));
  });

  it('and is mute only costs its own pod, which can be removed all the same', async () => {
    const [mute, good] = [await rig.startPod(), await rig.startPod()];
    const [silenced, other] = [await startTask(mute), await startTask(good)];
    await setMood(mute, 'mute');
    const waiting = Promise.allSettled([
      bounded(assert.rejects(kill(silenced), withReason('TimedOut'))),
      bounded(assert.rejects(reconnect(mute, [silenced.containerId]), withReason('TimedOut'))),
      bounded(assert.rejects(startTask(mute), withReason('TimedOut'))),
      bounded(assert.rejects(rig.exec(silenced, ['true'], 100), withReason('TimedOut'))),
    ]);
    const startedMs = performance.now();
    await kill(other);
    await rig.observed('TaskExited', ({ containerId }) => containerId === other.containerId);
    await remove(other);
    assert.ok(performance.now() - startedMs < 250);
    for (const result of await waiting) assert.deepEqual(result, { status: 'fulfilled', value: undefined });
    await bounded(remove(silenced));
    assert.ok((await deleted()).includes(silenced.containerId), 'its binary deletes what it does not');
    await bounded(stop(mute));
    assert.equal(await isAlive(mute.shim), false);
    assert.ok((await deleted()).includes(mute.podSandboxId));
    await stop(good);
  });

  it('and starts no command keeps none longer than its time, whether or not it has had its turn', async () => {
    const pod = await rig.startPod();
    const one = await startTask(pod);
    await setMood(pod, 'lazy');
    const turns = 2;
    const startedMs = performance.now();
    await Promise.all(
      Array.from({ length: 8 * turns }, () =>
        assert.rejects(rig.exec(one, ['true'], 100), withReason('TimedOut', /did not end within 100 ms/)),
      ),
    );
    const ms = performance.now() - startedMs;
    assert.ok(ms < turns * (100 + 200) + 500, `it took ${ms} ms`);
    await setMood(pod, 'good');
    await bounded(remove(one));
    await bounded(stop(pod));
  });

  it('and hangs up is called again, and its tasks are waited for over the new connection', async () => {
    const pod = await rig.startPod();
    const [one, two] = [await startTask(pod), await startTask(pod)];
    await setMood(pod, 'hangup');
    assert.deepEqual(await kill(one), { alreadyGone: false });
    await rig.observed('TaskExited', ({ containerId }) => containerId === one.containerId);
    await setMood(pod, 'hangup');
    await remove(two);
    await rig.observed('TaskExited', ({ containerId }) => containerId === two.containerId);
    await remove(one);
    assert.equal(
      rig.observations.some((o) => o.kind === 'ShimLost' && o.podSandboxId === pod.podSandboxId),
      false,
    );
    await stop(pod);
  });

  it('and listens no more counts as gone, and is ended when its pod is', async () => {
    const [other, pod] = [await rig.startPod(), await rig.startPod()];
    const one = await startTask(pod);
    // Connected at that moment, …
    await setMood(other, 'deaf').catch(() => undefined);
    assert.deepEqual(await bounded(reconnect(other, [])), { gone: true, tasks: [] });
    await bounded(stop(other));
    assert.equal(await isAlive(other.shim), false);
    // … and not.
    await rig.restart(() => setMood(pod, 'deaf').catch(() => undefined));
    assert.deepEqual(await bounded(reconnect(pod, [one.containerId])), { gone: true, tasks: [] });
    await bounded(remove(one));
    assert.ok((await deleted()).includes(one.containerId));
    assert.equal(await isAlive(pod.shim), true);
    await bounded(stop(pod));
    assert.equal(await isAlive(pod.shim), false);
  });

  it('and tells what no shim may tell is made sense of', async () => {
    const pod = await rig.startPod();
    const one = await startTask(pod);
    await setMood(pod, 'odd');
    const { tasks } = await reconnect(pod, [one.containerId]);
    assert.deepEqual(tasks, [
      { containerId: one.containerId, status: 'running', pid: pod.shim.pid, startTicks: pod.shim.startTicks },
    ]);
    await kill(one);
    const { exit } = await rig.observed('TaskExited', ({ containerId }) => containerId === one.containerId);
    assert.equal(exit.exitStatus, 0xffff_ffff);
    assert.ok(BigInt(exit.exitedAtNs) > 1_700_000_000_000_000_000n);
    await remove(one);
    await stop(pod);
  });

  it('can send the events server whatever it likes', async () => {
    const pod = await rig.startPod();
    const one = await startTask(pod);
    const events = createTtrpcClient(connect(rig.adapter.eventsAddress), 'the events server');
    const { fullName, methods } = EventsDefinition;
    const send = (payload: Uint8Array): Promise<unknown> =>
      events.call(fullName, methods.forward.name, payload, { timeoutMs: 2000 });
    const forward = (typeUrl: string, value: Uint8Array): Promise<unknown> =>
      send(
        ForwardRequest.encode(
          ForwardRequest.fromPartial({ envelope: { event: { typeUrl, value: Buffer.from(value) } } }),
        ).finish(),
      );
    const garbage = Buffer.from([0xff, 0xff, 0xff, 0xff]);
    const foreign = { containerId: rig.newId(), id: '', pid: 1 };
    await send(new Uint8Array(0));
    await forward('', garbage);
    await forward('containerd.events.TaskExit', garbage);
    await forward('containerd.events.TaskOOM', garbage);
    await forward(
      'containerd.events.TaskOOM',
      TaskOOM.encode(TaskOOM.fromPartial({ containerId: '__proto__' })).finish(),
    );
    await forward(
      'containerd.events.TaskExit',
      TaskExit.encode(TaskExit.fromPartial({ ...foreign, id: foreign.containerId })).finish(),
    );
    await forward(
      'containerd.events.TaskExit',
      TaskExit.encode(TaskExit.fromPartial({ containerId: one.containerId, id: 'exec' })).finish(),
    );
    await assert.rejects(send(garbage), { name: 'TtrpcStatusError' });
    const raw = connect(rig.adapter.eventsAddress);
    raw.on('error', () => undefined);
    raw.write(encodeFrame(1, FrameType.Request, 0, garbage));
    raw.write(garbage);
    raw.end('GET / HTTP/1.1\r\n\r\n'.repeat(1000));
    const oom = TaskOOM.encode(TaskOOM.fromPartial({ containerId: one.containerId })).finish();
    await forward('type.googleapis.com/containerd.events.TaskOOM', oom);
    events.close();
    raw.destroy();
    const told = rig.observations.filter((o) => 'containerId' in o && o.containerId === one.containerId);
    assert.deepEqual(told, [{ kind: 'TaskOomed', containerId: one.containerId }]);
    await remove(one);
    await stop(pod);
  });
});
