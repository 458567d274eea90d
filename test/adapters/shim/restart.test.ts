/** A daemon that comes back: it finds its shims, asks them for every task, and misses no exit. */
import assert from 'node:assert/strict';
import { readdir, readlink, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isThere } from '../../../src/platform/linux/exists.ts';
import { holdProcess, isAlive } from '../../../src/platform/linux/processes.ts';
import { dialShim } from '../../../src/adapters/shim/process/live-shim.ts';
import { shimPaths } from '../../../src/adapters/shim/paths.ts';
import { Status } from '../../../src/wire/types/task/task.ts';
import type { EffectOf, EffectResults } from '../../../src/domain/model/effects.ts';
import type { ShimAddress } from '../../../src/domain/model/tasks.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { startProcess } from '../../support/process.ts';
import type { DaemonTask } from './rig/daemon.ts';
import { deleteOf, killOf, type Rig, openContext, openRig } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';

const daemonPath = fileURLToPath(new URL('./rig/daemon.ts', import.meta.url));

for (const { version, path } of await testShims()) {
  describe(`after a restart, shim ${version}`, { timeout: 60_000 }, () => {
    let rig: Rig;
    type Pod = Awaited<ReturnType<Rig['startPod']>>;
    let pod: Pod;
    before(async () => {
      rig = await openRig(path);
      pod = await rig.startPod();
    });
    after(() => rig.close());

    const start = async (args: readonly string[], memoryLimitBytes?: number) => {
      const effect = await rig.container(pod.podSandboxId, {
        args,
        ...(memoryLimitBytes === undefined ? {} : { memoryLimitBytes }),
      });
      const { task } = await rig.launch(effect);
      return { ...effect, task };
    };
    const reconnect = (ids: readonly string[], of: Pod = pod): Promise<EffectResults['ReconnectShim']> => {
      const { podSandboxId, bundlePath, shim } = of;
      return rig.adapter.effects.ReconnectShim(
        { kind: 'ReconnectShim', podSandboxId, shim, bundlePath, containerIds: ids },
        openContext(),
      );
    };
    const remove = (effect: EffectOf<'CreateTask'>) => rig.adapter.effects.DeleteTask(deleteOf(effect), openContext());
    const exitOf = async (containerId: string) =>
      (await rig.observed('TaskExited', (o) => o.containerId === containerId)).exit;
    /** What the shim says, whether or not the daemon is up. */
    const untilStopped = async (containerId: string): Promise<void> => {
      const shim = await dialShim(pod.shim, 1000);
      await shim.wait({ id: containerId, execId: '' }, 10_000);
      shim.close();
    };

    it('C3: finds running, exited and absent tasks, with codes, times and counts', async () => {
      const onTerm = (what: string): string[] => ['sh', '-c', `trap '${what}' TERM; while :; do sleep 0.02; done`];
      const running = await start(['sleep', '1000']);
      const exited = await start(onTerm('exit 42'));
      const oomed = await start(onTerm('x=$(yes 0123456789 | head -c 100000000)'), 16 * 1024 * 1024);
      const absent = rig.newId();
      await sleep(100);
      await rig.restart(async () => {
        const shim = await dialShim(pod.shim, 1000);
        for (const { containerId } of [exited, oomed]) {
          await shim.kill({ id: containerId, execId: '', signal: 15, all: false }, 5000);
          await shim.wait({ id: containerId, execId: '' }, 10_000);
        }
        shim.close();
      });
      const startedMs = performance.now();
      const ids = [running, exited, oomed].map(({ containerId }) => containerId);
      const { gone, tasks } = await reconnect([...ids, absent]);
      assert.ok(performance.now() - startedMs < 2000);
      assert.equal(gone, false);
      const [one, two, three, four] = tasks;
      assert.deepEqual(one, { containerId: running.containerId, status: 'running', ...running.task });
      assert.deepEqual([two?.status, two?.exit?.exitStatus, two?.exit?.pid], ['stopped', 42, exited.task.pid]);
      assert.ok(BigInt(two?.exit?.exitedAtNs ?? 0) > BigInt(Date.now() - 30_000) * 1_000_000n);
      assert.deepEqual([three?.status, three?.exit?.exitStatus], ['stopped', 137]);
      assert.ok((three?.exit?.oomKills ?? 0) >= 1);
      assert.deepEqual(four, { containerId: absent, status: 'absent', pid: 0 });

      await rig.adapter.effects.KillTask(killOf(running), openContext());
      assert.equal((await exitOf(running.containerId)).exitStatus, 137);
      // Being asked again while connected tells the same, and the exit too.
      const again = await reconnect([running.containerId, exited.containerId]);
      assert.deepEqual(
        again.tasks.map(({ status, exit }) => [status, exit?.exitStatus]),
        [
          ['stopped', 137],
          ['stopped', 42],
        ],
      );
      await Promise.all([running, exited, oomed].map(remove));
      assert.deepEqual((await reconnect([running.containerId])).tasks[0]?.status, 'absent');
    });

    it('hears of an exit though the events server was down, and shims wait in vain for an answer', async () => {
      const one = await start(['sh', '-c', 'sleep 0.2; exit 9']);
      await rig.restart(() => untilStopped(one.containerId));
      // Nobody has asked yet; what shims still send about it is acknowledged and forgotten.
      await sleep(50);
      const { tasks } = await reconnect([one.containerId]);
      assert.equal(tasks[0]?.exit?.exitStatus, 9);
      await remove(one);
    });

    it('ends a task whose state the OCI runtime has lost', async () => {
      const lost = await start(['sleep', '1000']);
      // As somebody does who empties the state directory; where something is mounted it stays.
      await rig.restart(async () => {
        await rm(shimPaths(rig.stateDir).runtimeState(lost.containerId), { recursive: true });
        await rm(pod.bundlePath, { recursive: true });
      });
      assert.equal((await reconnect([lost.containerId])).tasks[0]?.status, 'running');
      const { alreadyGone } = await rig.adapter.effects.KillTask(killOf(lost), openContext());
      assert.equal(alreadyGone, false);
      assert.equal((await exitOf(lost.containerId)).exitStatus, 137);
      assert.deepEqual(await rig.adapter.effects.KillTask(killOf(lost), openContext()), { alreadyGone: true });
      await remove(lost);
      assert.ok(await isThere(pod.bundlePath), 'the shim has no directory');
    });

    it('runs execs in containers of before, and starts new ones', async () => {
      const old = await start(['sleep', '1000']);
      await rig.restart();
      await assert.rejects(rig.exec(old, ['echo', 'hi']), /no connection to a shim/);
      await reconnect([old.containerId]);
      assert.equal((await rig.exec(old, ['echo', 'hi'])).stdout, 'hi\n');
      const young = await start(['true']);
      assert.equal((await exitOf(young.containerId)).exitStatus, 0);
      await Promise.all([old, young].map(remove));
    });

    it('C19: takes over from a daemon that was killed in the middle of an exec', async (t) => {
      const { podSandboxId, bundlePath } = await rig.newPod();
      const createTask = await rig.container(podSandboxId, { args: ['sh', '-c', 'sleep 1000; exit 3'] });
      const { containerId } = createTask;
      const execId = rig.newId();
      const args = ['sh', '-c', 'sleep 0.05; echo $PPID; exec sleep 1000'];
      const { handler } = rig;
      const task: DaemonTask = {
        startShim: { kind: 'StartShim', podSandboxId, handler, bundlePath },
        createTask,
        runExec: {
          kind: 'RunExec',
          podSandboxId,
          containerId,
          execId,
          bundlePath: createTask.bundlePath,
          args,
          timeoutMs: null,
        },
      };
      const shims: ShimAddress[] = [];
      await rig.restart(async () => {
        const daemon = await startProcess(t, [process.execPath, daemonPath, rig.stateDir, JSON.stringify(task)]);
        const [json] = await daemon.until(/^\{.*\}$/m);
        const { shim } = JSON.parse(json) as { readonly shim: ShimAddress };
        shims.push(shim);
        const client = await dialShim(shim, 1000);
        const isExecRunning = (): Promise<boolean> =>
          client.state({ id: containerId, execId }, 1000).then(
            ({ status }) => status === Status.RUNNING,
            () => false,
          );
        while (!(await isExecRunning())) await sleep(5);
        client.close();
        daemon.kill('SIGKILL');
        await daemon.ended;
      });
      const [shim] = shims;
      assert.ok(shim !== undefined);
      const pod = { podSandboxId, bundlePath, shim };
      const { gone, tasks } = await reconnect([containerId], pod);
      assert.deepEqual([gone, tasks[0]?.status], [false, 'running']);
      await rig.adapter.effects.EndExec({ kind: 'EndExec', podSandboxId, containerId, execId }, openContext());
      assert.equal((await rig.exec(createTask, ['echo', 'alive'])).stdout, 'alive\n');
      await rig.adapter.effects.KillTask(killOf(createTask), openContext());
      assert.equal((await exitOf(containerId)).exitStatus, 137);
      await remove(createTask);
      await rig.adapter.effects.StopShim({ kind: 'StopShim', podSandboxId, handler, bundlePath, shim }, openContext());
    });

    it('removes what killed shims left of temporary files, and nothing that may be in use', async () => {
      const [old, young] = ['runc-process1', 'runc-process2'].map((name) => join(rig.stateDir, 'tmp', name));
      for (const path of [old, young]) await writeFile(path ?? '', 'SECRET=value');
      await utimes(old ?? '', 1, 1);
      await rig.restart();
      assert.deepEqual(await readdir(join(rig.stateDir, 'tmp')), ['runc-process2']);
      await rm(young ?? '');
    });

    it('reads the log of its shims again', async () => {
      await rig.restart();
      await reconnect([]);
      const targets = (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ''));
      assert.equal((await Promise.all(targets)).filter((target) => target === `${pod.bundlePath}/log`).length, 1);
    });

    it('finds shims gone that died meanwhile, and clears up after them', async () => {
      const other = await rig.startPod();
      const one = await rig.container(other.podSandboxId, { args: ['sleep', '1000'] });
      const { task } = await rig.launch(one);
      await rig.restart(async () => {
        const held = await holdProcess(other.shim);
        held?.kill(9);
        await held?.ended;
        held?.release();
      });
      assert.deepEqual(await reconnect([one.containerId], other), { gone: true, tasks: [] });
      assert.equal(await isAlive(task), true);
      await remove(one);
      assert.equal(await isAlive(task), false);
      const { podSandboxId, bundlePath, shim } = other;
      await rig.adapter.effects.StopShim(
        { kind: 'StopShim', podSandboxId, handler: rig.handler, bundlePath, shim },
        openContext(),
      );
      assert.equal(
        rig.observations.some((o) => o.kind === 'ShimLost' && o.podSandboxId === podSandboxId),
        false,
      );
      // The pid alone proves nothing: a process that started at another time is another.
      assert.deepEqual(await reconnect([], { ...pod, shim: { ...pod.shim, startTicks: '1' } }), {
        gone: true,
        tasks: [],
      });
    });
  });
}

it('a restarted daemon asks its shims when clients can call, and not before', { timeout: 60_000 }, async (t) => {
  const [shim] = await testShims();
  assert.ok(shim);
  const serving = Promise.withResolvers<void>();
  const rig = await openRig(shim.path, { whenServing: () => serving.promise });
  onCleanup(t, rig.close);
  const { podSandboxId, bundlePath, shim: address } = await rig.startPod();
  await rig.restart();
  const effect = { kind: 'ReconnectShim', podSandboxId, shim: address, bundlePath, containerIds: [] } as const;
  const answers: EffectResults['ReconnectShim'][] = [];
  const asking = rig.adapter.effects.ReconnectShim(effect, openContext()).then((answer) => answers.push(answer));
  // More than another needs to ask it and be answered.
  const connection = await dialShim(address, 1000);
  await assert.rejects(connection.state({ id: rig.newId(), execId: '' }, 5000));
  connection.close();
  assert.deepEqual(answers, []);
  serving.resolve();
  await asking;
  assert.deepEqual(answers, [{ gone: false, tasks: [] }]);
});
