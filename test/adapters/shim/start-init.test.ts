/** Tasks that the daemon starts itself, by the FIFO that runc's init waits at, and those that the shim is asked to start. */
import assert from 'node:assert/strict';
import { closeSync, constants, openSync } from 'node:fs';
import { access, chmod, readdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { shimPaths } from '../../../src/adapters/shim/paths.ts';
import { dialShim } from '../../../src/adapters/shim/process/live-shim.ts';
import type { TaskClient } from '../../../src/adapters/shim/task-client.ts';
import { stateOf } from '../../../src/adapters/shim/tasks/kill-and-delete.ts';
import { startInit } from '../../../src/adapters/shim/tasks/start-init.ts';
import { defaultTimings } from '../../../src/adapters/shim/timings.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { findProgram } from '../../../src/platform/linux/find-program.ts';
import { isAlive } from '../../../src/platform/linux/processes.ts';
import { readAway } from '../../../src/platform/linux/watch-readable.ts';
import { orAfter } from '../../../src/platform/rpc/timeout.ts';
import { Status } from '../../../src/wire/types/task/task.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { eventually } from '../../support/pods.ts';
import { tempDir } from '../../support/temp-dir.ts';
import type { BundleOptions } from './rig/bundles.ts';
import { deleteOf, killOf, openContext, openRig, type Rig, startOf } from './rig/rig.ts';
import { asNewerShim, testShims } from './rig/shims.ts';

/** runc, but for checkpoints: those are an image, and what was asked for. */
const runtime = (runc: string, dir: string): string => `#!/bin/sh
case " $* " in *" checkpoint "*) ;; *) exec ${runc} "$@" ;; esac
echo "$*" >${dir}/asked
[ -e ${dir}/fails ] && { echo 'criu failed: type NOTIFY errno 0' >&2; exit 1; }
for word; do [ "$previous" = --image-path ] && echo pages >"$word/pages-1.img"; previous=$word; done
exit 0
`;

for (const installed of await testShims()) {
  describe(`tasks started without shim ${installed.version}`, { timeout: 60_000 }, () => {
    const owner = cleanupAfterAll();
    let dir: string;
    let rig: Rig;
    let pod: Awaited<ReturnType<Rig['startPod']>>;
    let shim: TaskClient;
    type Created = EffectOf<'CreateTask'>;
    const parts = () => ({ paths: shimPaths(rig.stateDir), timings: defaultTimings, files: pooledFiles });

    before(async () => {
      dir = await tempDir(owner);
      const searchPath = process.env['PATH'] ?? '';
      const programs = { runc: runtime((await findProgram('runc', searchPath)) ?? '', dir), criu: '#!/bin/sh\n' };
      for (const [name, script] of Object.entries(programs)) {
        await writeFile(join(dir, name), script);
        await chmod(join(dir, name), 0o755);
      }
      rig = await openRig(await asNewerShim(installed, dir), { searchPath: `${dir}:${searchPath}` });
      pod = await rig.startPod();
      shim = await dialShim(pod.shim, 1000);
    });
    after(async () => {
      shim.close();
      await rig.close();
    });

    const container = (options: Partial<BundleOptions> = {}): Promise<Created> =>
      rig.container(pod.podSandboxId, { args: ['sleep', '1000'], ...options });
    const create = (one: Created) => rig.adapter.effects.CreateTask(one, openContext());
    const start = (one: Created) => rig.adapter.effects.StartTask(startOf(one), openContext());
    const remove = (one: Created) => rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
    const fifoOf = ({ containerId }: Created): string => join(rig.stateDir, 'runtime/k8s.io', containerId, 'exec.fifo');
    /** The shim's own word, and what is made of it. */
    const told = async ({ containerId }: Created): Promise<readonly (number | undefined)[]> => {
      const raw = await shim.state({ id: containerId, execId: '' }, 2000);
      const state = await stateOf({ paths: shimPaths(rig.stateDir) }, shim, containerId, 2000);
      return [raw.status, state?.status];
    };
    const startedHere = [Status.CREATED, Status.RUNNING];
    const startedByShim = [Status.RUNNING, Status.RUNNING];
    const exitOf = async ({ containerId }: Created) =>
      (await rig.observed('TaskExited', (observation) => observation.containerId === containerId)).exit;

    it('run, take commands and limits, are killed and deleted, though their shim calls them created', async () => {
      const one = await container();
      const { task } = await create(one);
      assert.deepEqual(await told(one), [Status.CREATED, Status.CREATED]);
      assert.deepEqual((await start(one)).task, task);
      assert.deepEqual(await told(one), startedHere);
      await assert.rejects(access(fifoOf(one)), /ENOENT/);
      assert.equal((await rig.exec(one, ['echo', 'hello'])).stdout, 'hello\n');
      const limits = {
        containerId: one.containerId,
        podSandboxId: one.podSandboxId,
        bundlePath: one.bundlePath,
        hasTask: true,
        resources: { memory: { limit: 33_554_432 } },
        previous: {},
        oomScoreAdj: 0,
      };
      await rig.adapter.effects.UpdateContainer({ kind: 'UpdateContainer', ...limits }, openContext());
      await rig.adapter.effects.KillTask(killOf(one), openContext());
      assert.equal((await exitOf(one)).exitStatus, 137);
      await remove(one);
    });

    it('are told of when they end at once', async () => {
      for (const [program, exitStatus] of [
        ['true', 0],
        ['false', 1],
      ] as const) {
        const one = await container({ args: [program] });
        await rig.launch(one);
        assert.equal((await exitOf(one)).exitStatus, exitStatus);
        await remove(one);
      }
    });

    it('fail in words of runc when their process has ended before', async () => {
      const dead = await container();
      const { task } = await create(dead);
      process.kill(task.pid, 'SIGKILL');
      await eventually('its process has ended', async () => !(await isAlive(task)));
      const gone = (error: unknown): boolean =>
        error instanceof FailureError &&
        error.failure.reason === 'RuntimeFailed' &&
        /cannot start|already dead/.test(error.message);
      await assert.rejects(start(dead), gone);

      // Nobody ever writes into the FIFO of one that stands still.
      const still = await container();
      const waiting = (await create(still)).task;
      process.kill(waiting.pid, 'SIGSTOP');
      const hasty = { ...parts(), timings: { ...defaultTimings, launchMs: 100 } };
      await assert.rejects(startInit(hasty, still, waiting), /did not begin within 100 ms/);
      const starting = start(still);
      assert.equal(await orAfter(starting, 200, 'pending'), 'pending');
      process.kill(waiting.pid, 'SIGKILL');
      await assert.rejects(starting, gone);
      for (const one of [dead, still]) await remove(one);
    });

    it('are found running by a daemon that comes after one killed before it could say so', async () => {
      const [begun, waiting, unmarked] = [await container(), await container(), await container()];
      const hooked = await container({ startContainer: [{ path: '/bin/sh', args: ['sh', '-c', 'sleep 1'] }] });
      const { task } = await create(begun);
      for (const one of [waiting, unmarked, hooked]) await create(one);
      assert.equal(await startInit(parts(), begun, task), true);
      // As one that was killed while the hooks ran.
      const fd = openSync(fifoOf(hooked), constants.O_RDONLY | constants.O_NONBLOCK);
      await eventually('it is let go', async () => readAway(fd, 16) === 'bytes');
      closeSync(fd);
      // As earlier versions have left it: whether it waits there is not known, and it does.
      await chmod(fifoOf(unmarked), 0o622);
      await utimes(fifoOf(unmarked), new Date(), new Date());
      await rig.restart();
      const all = [begun, hooked, waiting, unmarked];
      const ids = all.map(({ containerId }) => containerId);
      const { podSandboxId, bundlePath, shim: address } = pod;
      const effect = { kind: 'ReconnectShim', podSandboxId, shim: address, bundlePath, containerIds: ids } as const;
      const { tasks } = await rig.adapter.effects.ReconnectShim(effect, openContext());
      assert.deepEqual(
        tasks.map(({ status }) => status),
        ['running', 'running', 'created', 'created'],
      );
      await assert.rejects(access(fifoOf(hooked)), /ENOENT/);
      assert.equal((await rig.exec(begun, ['echo', 'hello'])).stdout, 'hello\n');
      for (const one of all) await remove(one);
      // Of what an earlier daemon has started, it is not known which version it is: the shim is asked.
      const later = await container();
      await rig.launch(later);
      assert.deepEqual(await told(later), startedByShim);
      await remove(later);
      pod = await rig.startPod();
      shim.close();
      shim = await dialShim(pod.shim, 1000);
    });

    it('are the shim’s to start where a start is more, or not runc’s', async () => {
      const mark = join(dir, 'hook-ran');
      const hooked = await container({ poststart: [{ path: '/bin/sh', args: ['sh', '-c', `touch ${mark}`] }] });
      await rig.launch(hooked);
      await access(mark);
      const other = await container();
      await create(other);
      // As crun makes it, which has it the other way round.
      await chmod(fifoOf(other), 0o600);
      await start(other);
      for (const one of [hooked, other]) {
        assert.deepEqual(await told(one), startedByShim);
        await remove(one);
      }
    });

    it('are checkpointed by a run of the OCI runtime', async () => {
      const one = await container();
      await rig.launch(one);
      assert.deepEqual(await told(one), startedHere);
      const { podSandboxId, containerId, bundlePath, rootfs } = one;
      const location = join(dir, 'one.tar');
      const task = { podSandboxId, containerId, bundlePath, rootfs };
      const to = { location, workDir: join(dir, 'work'), description: {}, timeoutMs: null };
      const effect: EffectOf<'CheckpointTask'> = { kind: 'CheckpointTask', ...task, ...to };
      const { digests } = await rig.adapter.effects.CheckpointTask(effect, openContext());
      assert.equal(digests?.length, 1);
      const asked = await readFile(join(dir, 'asked'), 'utf8');
      assert.match(asked, /--root \S+\/runtime\/k8s\.io checkpoint .*--leave-running/);
      await writeFile(join(dir, 'fails'), '');
      await assert.rejects(
        rig.adapter.effects.CheckpointTask(effect, openContext()),
        /Could not checkpoint container \w+: criu failed/,
      );
      assert.deepEqual(
        (await readdir(dir)).filter((name) => name === 'work'),
        [],
      );
      await remove(one);
    });
  });
}
