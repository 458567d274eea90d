/** Tasks on real shims and a real OCI runtime: started, signalled, ended, deleted, and what is told of them. */
import assert from 'node:assert/strict';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { readCgroupFacts } from '../../../src/platform/linux/cgroups.ts';
import { isAlive } from '../../../src/platform/linux/processes.ts';
import { orAfter } from '../../../src/platform/rpc/timeout.ts';
import { shimPaths } from '../../../src/adapters/shim/paths.ts';
import { stateOf as taskState } from '../../../src/adapters/shim/tasks/kill-and-delete.ts';
import { dialShim } from '../../../src/adapters/shim/process/live-shim.ts';
import type { TaskClient } from '../../../src/adapters/shim/task-client.ts';
import { createTtrpcClient } from '../../../src/platform/ttrpc/client.ts';
import { callMethod } from '../../../src/platform/ttrpc/method.ts';
import { TaskExit } from '../../../src/wire/events/task.ts';
import { EventsDefinition, ForwardRequest } from '../../../src/wire/services/ttrpc/events/v1/events.ts';
import { Status } from '../../../src/wire/types/task/task.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import { type Failure, FailureError } from '../../../src/domain/model/errors.ts';
import type { ShimAddress } from '../../../src/domain/model/tasks.ts';
import { eventually } from '../../support/pods.ts';
import { deleteOf, killOf, type Rig, openContext, openRig, startOf } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';
import { exists } from '../../../src/platform/linux/exists.ts';

for (const { version, path } of await testShims()) {
  describe(`tasks of shim ${version}`, { timeout: 60_000 }, () => {
    let rig: Rig;
    let pod: { readonly podSandboxId: string; readonly shim: ShimAddress };
    /** A connection of the test's own, to ask the shim behind the adapter's back. */
    let shim: TaskClient;

    before(async () => {
      rig = await openRig(path);
      pod = await rig.startPod();
      shim = await dialShim(pod.shim, 1000);
    });
    after(async () => {
      shim.close();
      await rig.close();
    });
    afterEach(() => {
      rig.observe = () => Promise.resolve();
    });

    type StartTask = EffectOf<'CreateTask'>;
    const container = (args: readonly string[], more: Partial<StartTask> = {}): Promise<StartTask> =>
      rig.container(pod.podSandboxId, { args, terminal: more.terminal ?? false }, more);
    const start = (effect: StartTask) => rig.launch(effect);
    const kill = (effect: StartTask, signal?: number) =>
      rig.adapter.effects.KillTask(killOf(effect, signal), openContext());
    const remove = (effect: StartTask) => rig.adapter.effects.DeleteTask(deleteOf(effect), openContext());
    const exitOf = async ({ containerId }: StartTask) =>
      (await rig.observed('TaskExited', (observation) => observation.containerId === containerId)).exit;
    const stateOf = async ({ containerId }: StartTask): Promise<number | null> =>
      shim.state({ id: containerId, execId: '' }, 2000).then(
        ({ status }) => status,
        () => null,
      );
    const failureOf = async (work: Promise<unknown>): Promise<Failure> => {
      const error: unknown = await work.then(
        () => null,
        (reason: unknown) => reason,
      );
      assert.ok(error instanceof FailureError, 'it did not fail with a failure of the catalogue');
      return error.failure;
    };
    it('runs, is read by the log keeper, and its exit is told once with code and time', async () => {
      const startedNs = BigInt(Date.now()) * 1_000_000n;
      const one = await container(['sh', '-c', 'echo out; echo err >&2; sleep 0.1; exit 7']);
      const { task } = await start(one);
      assert.ok(task.pid > 1 && /^[1-9]\d*$/.test(task.startTicks));
      const exit = await exitOf(one);
      assert.deepEqual({ ...exit, exitedAtNs: '' }, { pid: task.pid, exitStatus: 7, oomKills: 0, exitedAtNs: '' });
      assert.ok(BigInt(exit.exitedAtNs) > startedNs && BigInt(exit.exitedAtNs) <= BigInt(Date.now() + 1) * 1_000_000n);
      await remove(one);
      assert.equal(rig.logKeeper.outputOf(one.containerId).split('\n').sort().join(), ',err,out');
      assert.deepEqual(
        rig.logKeeper.closed.filter((id) => id === one.containerId),
        [one.containerId],
      );
      assert.equal(await exists(join(rig.stateDir, 'io', one.containerId)), false);
      assert.equal(await stateOf(one), null);
      const told = rig.observations.filter((o) => o.kind === 'TaskExited' && o.containerId === one.containerId);
      assert.equal(told.length, 1);
    });

    it('is told of after its start, however fast it exits', async () => {
      for (let round = 0; round < 5; round += 1) {
        const one = await container(['true']);
        let told = false;
        rig.observe = (observation) => {
          told ||= observation.kind === 'TaskExited' && observation.containerId === one.containerId;
          return Promise.resolve();
        };
        await start(one);
        assert.equal(told, false);
        assert.equal((await exitOf(one)).exitStatus, 0);
        await remove(one);
      }
    });

    it('is killed, and killing what has ended is no failure', async () => {
      const one = await container(['sleep', '1000']);
      const { task } = await start(one);
      assert.equal(await isAlive(task), true);
      assert.deepEqual(await kill(one, 9), { alreadyGone: false });
      assert.equal((await exitOf(one)).exitStatus, 137);
      assert.equal(await isAlive(task), false);
      assert.deepEqual(await kill(one, 9), { alreadyGone: true });
      await remove(one);
      assert.deepEqual(await kill(one, 9), { alreadyGone: true });
      assert.deepEqual(await kill(await container(['true']), 15), { alreadyGone: true });
    });

    it('is killed while its shim stands still, which tells the exit later', async () => {
      const one = await container(['sleep', '1000']);
      const { task } = await start(one);
      process.kill(pod.shim.pid, 'SIGSTOP');
      try {
        assert.deepEqual(await kill(one, 9), { alreadyGone: false });
        await eventually('the process has ended', async () => !(await isAlive(task)), 5_000);
      } finally {
        process.kill(pod.shim.pid, 'SIGCONT');
      }
      assert.equal((await exitOf(one)).exitStatus, 137);
      await remove(one);
    });

    it('is killed where a freezer holds it', async () => {
      const { version, controllers } = await readCgroupFacts();
      const one = await container(['sleep', '1000']);
      const { task } = await start(one);
      const groups = await readFile(`/proc/${task.pid}/cgroup`, 'utf8');
      const path = (version === 2 ? /^0::(.*)$/m : /^\d+:freezer:(.*)$/m).exec(groups)?.[1] ?? '';
      const directory = join(controllers[version === 2 ? 'memory' : 'freezer'] ?? '', path);
      await writeFile(
        join(directory, version === 2 ? 'cgroup.freeze' : 'freezer.state'),
        version === 2 ? '1' : 'FROZEN',
      );
      assert.deepEqual(await kill(one, 9), { alreadyGone: false });
      assert.equal((await exitOf(one)).exitStatus, 137);
      await remove(one);
    });

    it('killed for lack of memory says so, with the count of its cgroup', async () => {
      const memoryLimitBytes = 16 * 1024 * 1024;
      const args = ['sh', '-c', 'x=$(yes 0123456789 | head -c 100000000); echo survived'];
      const one = await rig.container(pod.podSandboxId, { args, memoryLimitBytes });
      await start(one);
      const exit = await exitOf(one);
      assert.equal(exit.exitStatus, 137);
      assert.ok(exit.oomKills >= 1);
      await rig.observed('TaskOomed', ({ containerId }) => containerId === one.containerId);
      await remove(one);
    });

    it('that is still running is killed by its deletion, which may be repeated', async () => {
      const one = await container(['sleep', '1000']);
      const { task } = await start(one);
      await remove(one);
      assert.equal(await isAlive(task), false);
      assert.equal((await exitOf(one)).exitStatus, 137);
      assert.equal(await stateOf(one), null);
      await remove(one);
      await remove(await container(['true']));
    });

    it('C3: is not deleted before its exit is durable', async () => {
      const one = await container(['sleep', '1000']);
      await start(one);
      const { promise: durable, resolve: makeDurable } = Promise.withResolvers<void>();
      const { promise: observing, resolve: startObserving } = Promise.withResolvers<void>();
      rig.observe = async () => {
        startObserving();
        await durable;
      };
      const removed = remove(one);
      await observing;
      assert.equal(await orAfter(removed, 100, 'pending'), 'pending');
      assert.equal(await stateOf(one), Status.STOPPED);
      makeDurable();
      await removed;
      assert.equal(await stateOf(one), null);
    });

    it('C3: its exit event is acknowledged only once the exit is durable', async () => {
      const one = await container(['sleep', '1000']);
      const { task } = await start(one);
      const { promise: durable, resolve: makeDurable } = Promise.withResolvers<void>();
      let failures = 2;
      rig.observe = async () => {
        await durable;
        failures -= 1;
        if (failures >= 0) throw new Error('the journal is busy');
      };
      const events = createTtrpcClient(connect(rig.adapter.eventsAddress), 'the events server');
      const event = TaskExit.fromPartial({
        containerId: one.containerId,
        id: one.containerId,
        pid: task.pid,
        exitStatus: 3,
      });
      const forward = (pid: number): Promise<unknown> => {
        const value = Buffer.from(TaskExit.encode({ ...event, pid }).finish());
        const request = ForwardRequest.fromPartial({
          envelope: {
            namespace: 'k8s.io',
            topic: '/tasks/exit',
            event: { typeUrl: 'containerd.events.TaskExit', value },
          },
        });
        const { fullName, methods } = EventsDefinition;
        return callMethod(events, fullName, methods.forward, request, { timeoutMs: 5000 });
      };
      // An exit of another pid is not this task's.
      await forward(task.pid + 100_000);
      const acknowledged = forward(task.pid);
      assert.equal(await orAfter(acknowledged, 100, 'pending'), 'pending');
      makeDurable();
      await acknowledged;
      assert.equal(failures, -1);
      assert.equal((await exitOf(one)).exitStatus, 3);
      events.close();
      await remove(one);
    });

    it('whose creation fails leaves nothing behind, and can be started anew', async () => {
      const one = await container(['/bin/nothing-of-that-name']);
      await assert.rejects(start(one), (error: Error) => {
        assert.match(error.message, /Could not create the task of container .*: .*nothing-of-that-name/);
        return true;
      });
      assert.equal(await stateOf(one), null);
      assert.equal(await exists(join(rig.stateDir, 'io', one.containerId)), false);
      assert.deepEqual(await readdir(join(rig.stateDir, 'runtime/k8s.io')), []);
      assert.doesNotMatch(await readFile('/proc/self/mountinfo', 'utf8'), new RegExp(one.bundlePath));
      await start(await rig.container(pod.podSandboxId, { args: ['true'] }, { containerId: one.containerId }));
      assert.equal((await exitOf(one)).exitStatus, 0);
      await remove(one);
    });

    it('whose OCI runtime is not there says so, and what to do; a missing program of its own is another matter', async () => {
      for (const binaryName of ['norunc', '/nonexistent/runc']) {
        const handler = { ...rig.handler, name: 'special', binaryName };
        const failure = await failureOf(start(await container(['true'], { handler })));
        assert.equal(failure.reason, 'HostLacks');
        assert.match(
          failure.message,
          new RegExp(`: ${binaryName}, the OCI runtime .*set binary_name of .*handlers.special`),
        );
      }
      assert.equal((await failureOf(start(await container(['nonexistent'])))).reason, 'RuntimeFailed');
    });

    it('whose start was cut short is taken up where it was', async () => {
      const created = await container(['sleep', '1000'], { log: null });
      const running = await container(['sleep', '1000']);
      const stopped = await container(['sh', '-c', 'exit 5']);
      await Promise.all([created, running, stopped].map(start));
      const { task } = await start(running);
      assert.deepEqual(await start(running), { task });
      assert.equal((await exitOf(stopped)).exitStatus, 5);
      assert.equal((await start(stopped)).task.pid > 1, true);
      // Created behind the adapter's back, as by a daemon that died before Start.
      await remove(created);
      const { pid } = await shim.create(
        {
          id: created.containerId,
          bundle: created.bundlePath,
          rootfs: created.rootfs.map((mount) => ({ target: '', ...mount, options: [...mount.options] })),
          terminal: false,
          stdin: '',
          stdout: '',
          stderr: '',
          checkpoint: '',
          parentCheckpoint: '',
          options: undefined,
        },
        5000,
      );
      assert.equal((await start(created)).task.pid, pid);
      assert.equal(await stateOf(created), Status.RUNNING);
      await Promise.all([created, running, stopped].map(remove));
    });

    it('has a process once it is created, which runs what it is to run only when it is started', async () => {
      const one = await container(['sh', '-c', 'echo ran; sleep 1000']);
      const created = await rig.adapter.effects.CreateTask(one, openContext());
      assert.equal(await stateOf(one), Status.CREATED);
      assert.equal(await isAlive(created.task), true);
      assert.equal(rig.logKeeper.outputOf(one.containerId), '');
      const started = await rig.adapter.effects.StartTask(startOf(one), openContext());
      assert.deepEqual(started, created);
      const told = await taskState({ paths: shimPaths(rig.stateDir) }, shim, one.containerId, 2000);
      assert.equal(told?.status, Status.RUNNING);
      await remove(one);
      assert.equal(rig.logKeeper.outputOf(one.containerId), 'ran\n');
    });

    it('joins the namespace of the process that was meant, and of no other that has its pid', async () => {
      const target = await container(['sleep', '1000']);
      const { task } = await start(target);
      const joining = await container(['sleep', '1000'], { target: task });
      await start(joining);
      const later = { ...task, startTicks: String(BigInt(task.startTicks) + 1n) };
      for (const gone of [later, null]) {
        const one = await container(['sleep', '1000'], { target: gone });
        const failure = await failureOf(start(one));
        assert.equal(failure.reason, 'WrongState');
        assert.match(failure.message, /target_id/);
        assert.equal(await stateOf(one), null);
        await remove(one);
      }
      await Promise.all([target, joining].map(remove));
    });

    it('that was created only is deleted, and cannot be started after that', async () => {
      const one = await container(['sleep', '1000']);
      const { task } = await rig.adapter.effects.CreateTask(one, openContext());
      await remove(one);
      assert.equal(await isAlive(task), false);
      assert.equal(await stateOf(one), null);
      const failure = await failureOf(rig.adapter.effects.StartTask(startOf(one), openContext()));
      assert.equal(failure.reason, 'RuntimeFailed');
    });

    it('has a terminal when it is to have one', async () => {
      const one = await container(['sh', '-c', '[ -t 1 ] && echo terminal; exit 4'], { terminal: true });
      await start(one);
      assert.equal((await exitOf(one)).exitStatus, 4);
      await remove(one);
      assert.equal(rig.logKeeper.outputOf(one.containerId), 'terminal\r\n');
    });

    it('keeps its stdin open and silent until somebody writes, when it is to have one', async () => {
      const one = await container(['sh', '-c', 'read line; echo got $line; read more && echo more $more'], {
        stdin: true,
      });
      const none = await container(['sh', '-c', 'read line; echo end $?']);
      await Promise.all([start(one), start(none)]);
      assert.equal((await exitOf(none)).exitStatus, 0);
      for (const word of ['first', 'second']) {
        const writer = await open(join(rig.stateDir, 'io', one.containerId, 'stdin'), 'w');
        await writer.write(`${word}\n`);
        await writer.close();
      }
      assert.equal((await exitOf(one)).exitStatus, 0);
      await Promise.all([one, none].map(remove));
      assert.equal(rig.logKeeper.outputOf(one.containerId), 'got first\nmore second\n');
      assert.equal(rig.logKeeper.outputOf(none.containerId), 'end 1\n');
    });

    it('runs without streams as the pause task does', async () => {
      const pause = await rig.container(pod.podSandboxId, { args: ['sh', '-c', 'echo lost; exit 0'] }, { log: null });
      await start(pause);
      assert.equal((await exitOf(pause)).exitStatus, 0);
      assert.equal(await exists(join(rig.stateDir, 'io', pause.containerId)), false);
      await remove(pause);
      assert.equal(rig.logKeeper.closed.includes(pause.containerId), false);
    });

    it('passes the reopening of its log on', async () => {
      const one = await container(['true']);
      const log = (logPath: string | null): EffectOf<'ReopenLog'> => ({
        kind: 'ReopenLog',
        containerId: one.containerId,
        log: { path: logPath },
      });
      await rig.adapter.effects.ReopenLog(log('/var/log/x'), openContext());
      await rig.adapter.effects.ReopenLog(log(null), openContext());
      assert.deepEqual(rig.logKeeper.reopened, [`${one.containerId} /var/log/x`]);
    });

    it('refuses ids and bundles that lead astray', async () => {
      const one = await container(['true']);
      await assert.rejects(start({ ...one, containerId: '../x' }), { name: 'FailureError' });
      await assert.rejects(remove({ ...one, bundlePath: '/' }), { name: 'FailureError' });
    });
  });
}
