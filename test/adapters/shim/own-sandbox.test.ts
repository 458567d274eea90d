/** A shim's own sandbox service: what its effects do with one that behaves, is repeated, restarted under, stuck or lies. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isAlive } from '../../../src/platform/linux/processes.ts';
import { withReason } from '../../support/failures.ts';
import { bounded, type FakeRig, openFakeRig, setMood } from './rig/fake.ts';
import { openContext, type Rig } from './rig/rig.ts';

describe("a shim's own sandbox", { timeout: 60_000 }, () => {
  let fake: FakeRig;
  let rig: Rig;

  before(async () => {
    fake = await openFakeRig();
    ({ rig } = fake);
  });
  after(() => fake.close());

  type Pod = Awaited<ReturnType<Rig['startPod']>>;
  const start = ({ podSandboxId, bundlePath, shim }: Pod) =>
    rig.adapter.effects.StartSandbox(
      { kind: 'StartSandbox', podSandboxId, shim, bundlePath, rootfs: [], netnsPath: '/netns', config: {} },
      openContext(),
    );
  const stop = ({ podSandboxId }: Pod) =>
    rig.adapter.effects.StopSandbox({ kind: 'StopSandbox', podSandboxId, timeoutSeconds: 0 }, openContext());
  const end = ({ podSandboxId, bundlePath, shim }: Pod) =>
    rig.adapter.effects.StopShim(
      { kind: 'StopShim', podSandboxId, handler: rig.handler, bundlePath, shim, hasSandbox: true },
      openContext(),
    );
  const reconnect = ({ podSandboxId, bundlePath, shim }: Pod) =>
    rig.adapter.effects.ReconnectShim(
      { kind: 'ReconnectShim', podSandboxId, bundlePath, shim, containerIds: [], sandboxPid: shim.pid },
      openContext(),
    );
  /** An answer of the one comes while the other's is waited for: in one of many tries, since the machine may be busy. */
  const isOvertaken = async (mute: Pod, good: Pod): Promise<boolean> => {
    for (let tries = 0; tries < 20; tries += 1) {
      const answered = { isOver: false };
      const waiting = rig.adapter.sandboxDetails(mute.podSandboxId).then(() => {
        answered.isOver = true;
      });
      await rig.adapter.sandboxDetails(good.podSandboxId);
      const overtaken = !answered.isOver;
      await waiting;
      if (overtaken) return true;
    }
    return false;
  };
  const exitOf = ({ podSandboxId }: Pod) =>
    rig.observed('TaskExited', ({ containerId }) => containerId === podSandboxId);

  it('is created and started once, however often it is asked for, stopped with its exit told, and shut down', async () => {
    const pod = await rig.startPod();
    const { pid, startTicks } = pod.shim;
    const started = { task: { pid, startTicks }, platform: { os: 'linux', architecture: 'pdp11' } };
    assert.deepEqual(await start(pod), started);
    assert.deepEqual(await start(pod), started);
    assert.deepEqual(await rig.adapter.sandboxDetails(pod.podSandboxId), {
      state: 'SANDBOX_READY',
      info: { kind: 'fake' },
      metrics: { typeUrl: 'fake.Metrics', value: 'AAAA' },
    });
    await stop(pod);
    const { podSandboxId, execId, exit } = await exitOf(pod);
    assert.deepEqual([podSandboxId, execId, exit.pid, exit.exitStatus], [pod.podSandboxId, null, pid, 7]);
    await end(pod);
    assert.equal(await isAlive(pod.shim), false);
    assert.ok((await readFile(join(fake.dir, 'deleted'), 'utf8')).includes(pod.podSandboxId), 'its binary tidies up');
    await stop(pod);
  });

  it('is stopped over a new connection when the shim hangs up', async () => {
    const pod = await rig.startPod();
    await start(pod);
    await setMood(pod, 'hangup');
    await stop(pod);
    assert.equal((await exitOf(pod)).exit.exitStatus, 7);
    await end(pod);
  });

  it('is found again after a restart, and its end is told from then on', async () => {
    const pod = await rig.startPod();
    await start(pod);
    await rig.restart();
    const found = { containerId: pod.podSandboxId, pid: pod.shim.pid };
    assert.deepEqual(await reconnect(pod), { gone: false, tasks: [{ ...found, status: 'running' }] });
    await setMood(pod, 'fallen');
    assert.equal((await exitOf(pod)).exit.exitStatus, 7);
    await end(pod);
  });

  it('that ended meanwhile tells its exit after a restart; one that never was is absent', async () => {
    const [fallen, never] = [await rig.startPod(), await rig.startPod()];
    await start(fallen);
    await rig.restart(() => setMood(fallen, 'fallen'));
    const [first] = (await reconnect(fallen)).tasks;
    assert.deepEqual([first?.status, first?.exit?.exitStatus, first?.exit?.pid], ['stopped', 7, fallen.shim.pid]);
    const [second] = (await reconnect(never)).tasks;
    assert.equal(second?.status, 'absent');
    await end(fallen);
    await end(never);
  });

  it('that its shim knows of no more has ended, and nobody knows how', async () => {
    const pod = await rig.startPod();
    await start(pod);
    await setMood(pod, 'forgetful');
    const { exit } = await bounded(exitOf(pod));
    assert.deepEqual([exit.pid, exit.exitStatus], [pod.shim.pid, 255]);
    await stop(pod);
    await end(pod);
  });

  it('that is stuck is said to be stuck, in bounded time, and ends with its shim', async () => {
    const pod = await rig.startPod();
    await start(pod);
    await setMood(pod, 'stuck');
    await bounded(assert.rejects(stop(pod), withReason('TimedOut', /which answers PingSandbox\.$/)));
    await end(pod);
    assert.equal(await isAlive(pod.shim), false);
  });

  it('of a mute shim costs its own pod bounded times, and others nothing', async () => {
    const [mute, late, good] = [await rig.startPod(), await rig.startPod(), await rig.startPod()];
    await start(mute);
    for (const pod of [mute, late]) await setMood(pod, 'mute');
    const waiting = Promise.all([
      bounded(assert.rejects(stop(mute), withReason('TimedOut', /does not answer PingSandbox either/))),
      bounded(assert.rejects(start(late), withReason('TimedOut'))),
      bounded(rig.adapter.sandboxDetails(mute.podSandboxId)),
    ]);
    await start(good);
    await stop(good);
    const [, , details] = await waiting;
    assert.match(String(details['problem']), /did not answer SandboxStatus within/);
    assert.ok(await isOvertaken(mute, good), 'others wait for the mute one');
    for (const pod of [mute, late, good]) await bounded(end(pod));
    assert.equal(await isAlive(mute.shim), false);
  });

  it('is not believed when it runs what is not Linux, or is a process that was there before the pod', async () => {
    const [foreign, odd] = [await rig.startPod(), await rig.startPod()];
    await setMood(foreign, 'foreign');
    await assert.rejects(start(foreign), withReason('ShimFailed', /runs containers of "plan9"/));
    await setMood(odd, 'odd');
    await assert.rejects(start(odd), withReason('ShimFailed', /is process 1, which was there before the pod/));
    // It answers for another sandbox, and with metrics that nobody could want.
    assert.match(String((await rig.adapter.sandboxDetails(odd.podSandboxId))['problem']), /for another sandbox/);
    await assert.rejects(reconnect(odd), withReason('ShimFailed', /for another sandbox/));
    for (const pod of [foreign, odd]) await end(pod);
  });
});
