/**
 * Starts that kill -9 of the daemon cuts short, at each moment between the opening of the FIFO that a container's process
 * waits at and its removal, whoever does that: the daemon, or the OCI runtime for a shim that is asked, which ends with the
 * daemon's connection. The process is stopped meanwhile, so that the moment is a certain one.
 */
import assert from 'node:assert/strict';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { readdir, readFile, readlink, symlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { errorCodeOf } from '../../src/platform/error-code.ts';
import { type ContainerStatus, ContainerState } from '../../src/wire/cri/api.ts';
import { exists } from '../../src/platform/linux/exists.ts';
import { asNewerShim, testShims } from '../adapters/shim/rig/shims.ts';
import { agreement } from '../support/agreement.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { toldByShims } from '../support/journal.ts';
import { processes } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, statusOf } from '../support/pods.ts';
import { assertReplays } from '../support/replayed.ts';
import { tempDir } from '../support/temp-dir.ts';

const { CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;
const timeout = 120_000;
const INIT = 'runc:[2:INIT]';
/** How it ends when it fails: 1 by runc 1.1, 255 by 1.2 and later. */
const INIT_FAILED: ReadonlySet<number> = new Set([1, 255]);

interface Seen {
  readonly program: string;
  readonly state: string;
}

/** As the kernel names its program; null when it has ended. */
const seen = async (pid: number): Promise<Seen | null> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const [, program = '', state = 'Z'] = /\((.*)\) (.)/s.exec(stat) ?? [];
  return state === 'Z' ? null : { program, state };
};
/** One of its threads, in opening a FIFO or in writing to it: as the kernel names its functions. */
const waitsIn = async (pid: number, where: 'wait_for_partner' | 'pipe_write'): Promise<boolean> => {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const places = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/wchan`, 'utf8').catch(() => ''));
  return (await Promise.all(places)).some((place) => place.endsWith(where));
};
const waitsAtFifo = (pid: number): Promise<boolean> => waitsIn(pid, 'wait_for_partner');
const isStopped = async (pid: number): Promise<boolean> => (await seen(pid))?.state === 'T';
const hasEnded = async (pid: number): Promise<boolean> => (await seen(pid)) === null;
/** It runs what the container is for, or has ended. */
const isOver = async (pid: number): Promise<boolean> => (await seen(pid))?.program !== INIT;
const hasOpen = async (pid: number, path: string): Promise<boolean> => {
  const names = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const targets = await Promise.all(names.map((name) => readlink(`/proc/${pid}/fd/${name}`).catch(() => '')));
  return targets.includes(path);
};
const { O_RDONLY, O_RDWR, O_NONBLOCK } = constants;
/** Until there is no room for a byte. */
const fill = (fd: number): void => {
  try {
    for (;;) writeSync(fd, new Uint8Array(4096));
  } catch (error) {
    assert.equal(errorCodeOf(error), 'EAGAIN');
  }
};
/** What an OCI runtime does to let it go. */
const starting = async (containerId: string): Promise<number | undefined> =>
  (await processes()).find(({ commandLine }) => commandLine.endsWith(` start ${containerId}`))?.pid;

for (const starter of ['the daemon', 'the OCI runtime'] as const)
  describe(`starts by ${starter} that are cut short`, () => {
    const owner = cleanupAfterAll();
    let node: TestNode;
    before(async () => {
      const [installed] = await testShims();
      if (installed === undefined) throw new Error('there is no shim to test with');
      const dir = await tempDir(owner);
      const path = starter === 'the daemon' ? await asNewerShim(installed, dir) : installed.path;
      await symlink(path, join(dir, 'containerd-shim-runc-v2'));
      node = await startNode(owner, { env: { PATH: `${dir}:${process.env['PATH'] ?? ''}` } });
    });

    /** A start that waits for the container's process, which is stopped before it has the FIFO open. */
    const begin = async (name: string, command: readonly string[]) => {
      const { daemon } = node;
      const { runtime } = daemon.cri;
      const sandboxConfig = podConfig(daemon, name, ownPids);
      const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
      const config = containerConfig('main', busyboxName, command);
      const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
      const pidFile = join(daemon.dirs.state, 'bundles', containerId, 'init.pid');
      const pid = await eventually('its task is made ahead', async () => {
        const found = Number(await readFile(pidFile, 'utf8').catch(() => ''));
        return found > 0 && (await waitsAtFifo(found)) && found;
      });
      process.kill(pid, 'SIGSTOP');
      await eventually('its process stands still', () => isStopped(pid));
      const fifo = join(daemon.dirs.state, 'runtime/k8s.io', containerId, 'exec.fifo');
      const interrupted = assert.rejects(runtime.startContainer({ containerId }));
      await eventually('it is being started', async () => {
        if (starter === 'the daemon') return hasOpen(daemon.pid(), fifo);
        const runc = await starting(containerId);
        // It waits for the FIFO to open, and from runc 1.6 on has it open and waits for the byte.
        return runc !== undefined && ((await waitsAtFifo(runc)) || (await hasOpen(runc, fifo)));
      });
      return { podSandboxId, containerId, pid, fifo, interrupted };
    };
    type Begun = Awaited<ReturnType<typeof begin>>;

    /** Of one whose process stands still, whoever was to let it go is gone. */
    const kill = async ({ interrupted, containerId }: Begun): Promise<void> => {
      await node.daemon.kill();
      await interrupted;
      await eventually('nobody starts it', async () => (await starting(containerId)) === undefined);
    };

    /** Killed when the byte is written, which nobody has read, or the OCI runtime has. */
    const killBehindByte = async (begun: Begun): Promise<void> => {
      const { pid, fifo } = begun;
      const goesOn = async (): Promise<void> => {
        process.kill(pid, 'SIGCONT');
        await eventually('its process goes on', () => isOver(pid));
      };
      if (starter === 'the daemon') {
        process.kill(node.daemon.pid(), 'SIGSTOP');
        await goesOn();
        await kill(begun);
      } else {
        await kill(begun);
        // The OCI runtime cannot be stopped there: it has not come back from opening.
        const fd = openSync(fifo, O_RDONLY | O_NONBLOCK);
        await goesOn();
        assert.equal(readSync(fd, new Uint8Array(16)), 1);
        closeSync(fd);
      }
      assert.ok(await exists(fifo));
    };

    /** What the next daemon says of it: to clients, and why; and what it was told by the shim. */
    const next = async ({ containerId }: Begun) => {
      const { daemon } = node;
      await daemon.start();
      const status = await eventually('it is settled', async (): Promise<ContainerStatus | false> => {
        const now = await statusOf(daemon, containerId);
        const isSettled = now.state === CONTAINER_RUNNING || (now.state === CONTAINER_EXITED && now.reason !== '');
        return isSettled && now;
      });
      await agreement(daemon);
      const { stdout } = await daemon.scribe('why', containerId, '--root', daemon.dirs.root);
      const told = (await toldByShims(daemon)).get(containerId);
      return { status, why: stdout.split('\n')[0] ?? '', told };
    };
    const remove = async ({ podSandboxId }: Begun): Promise<void> => {
      await removePod(node.daemon, podSandboxId);
    };

    test('before the FIFO was opened: it waits on, and is not started', { timeout }, async () => {
      const begun = await begin('waits', ['sleep', '1000']);
      await kill(begun);
      process.kill(begun.pid, 'SIGCONT');
      await eventually('it waits again', () => waitsAtFifo(begun.pid));
      const { status, why, told } = await next(begun);
      assert.equal(told?.status, 'created');
      assert.deepEqual([status.state, status.exitCode, status.reason], [CONTAINER_EXITED, 128, 'StartError']);
      assert.match(why, /could not be started: the daemon ended before the task was started\.$/);
      await remove(begun);
    });

    test('before its process has written: that fails, and it is not started', { timeout }, async () => {
      const begun = await begin('unheard', ['sh', '-c', 'exit 1']);
      const { pid, fifo } = begun;
      await kill(begun);
      // It opens what somebody has open, and cannot write, as it is full; when that goes, nobody reads what it writes.
      const fd = openSync(fifo, O_RDWR | O_NONBLOCK);
      fill(fd);
      process.kill(pid, 'SIGCONT');
      await eventually('it writes', () => waitsIn(pid, 'pipe_write'));
      await utimes(fifo, 0, 0);
      closeSync(fd);
      await eventually('its process ends', () => hasEnded(pid));
      const { status, why, told } = await next(begun);
      assert.deepEqual([told?.status, told?.neverBegan], ['stopped', true]);
      assert.ok(INIT_FAILED.has(told?.exit?.exitStatus ?? 0), `it ended with ${told?.exit?.exitStatus}`);
      assert.deepEqual(
        [status.state, status.exitCode, status.reason, status.startedAt],
        [CONTAINER_EXITED, 128, 'StartError', '0'],
      );
      assert.match(why, /could not be started: the daemon ended while .* process ended before its command began\.$/);
      await remove(begun);
    });

    test('when its process was killed as it waited: it is not started', { timeout }, async () => {
      const begun = await begin('killed', ['sleep', '1000']);
      await kill(begun);
      process.kill(begun.pid, 'SIGKILL');
      await eventually('its process ends', () => hasEnded(begun.pid));
      const { status, told } = await next(begun);
      assert.deepEqual([told?.status, told?.exit?.exitStatus, told?.neverBegan], ['stopped', 137, true]);
      assert.deepEqual([status.state, status.exitCode, status.reason], [CONTAINER_EXITED, 128, 'StartError']);
      await remove(begun);
    });

    test('when its process has written: it runs', { timeout }, async () => {
      const { runtime } = node.daemon.cri;
      const begun = await begin('runs', ['sleep', '1000']);
      await killBehindByte(begun);
      const { status, told } = await next(begun);
      assert.deepEqual([told?.status, told?.pid], ['running', begun.pid]);
      assert.deepEqual([status.state, await exists(begun.fifo)], [CONTAINER_RUNNING, false]);
      const { containerId } = begun;
      assert.equal((await runtime.execSync({ containerId, cmd: ['echo', 'here'] })).stdout.toString(), 'here\n');
      await runtime.stopContainer({ containerId, timeout: '0' });
      const { state, exitCode } = await statusOf(node.daemon, containerId);
      assert.deepEqual([state, exitCode], [CONTAINER_EXITED, 137]);
      await remove(begun);
    });

    for (const code of [0, 1, 128])
      test(`when its process has written: it has ended as its program has, with ${code}`, { timeout }, async () => {
        const begun = await begin(`ends-${code}`, ['sh', '-c', `exit ${code}`]);
        await killBehindByte(begun);
        await eventually('its process ends', () => hasEnded(begun.pid));
        const { status, why, told } = await next(begun);
        assert.deepEqual([told?.status, told?.exit?.exitStatus, told?.neverBegan], ['stopped', code, undefined]);
        assert.deepEqual(
          [status.state, status.exitCode, status.reason],
          [CONTAINER_EXITED, code, code === 0 ? 'Completed' : 'Error'],
        );
        assert.match(why, code === 0 ? /ended by itself, successfully/ : /failed by itself/);
        await remove(begun);
      });

    test('C13: all of that is decided again as it was', { timeout }, async () => {
      assert.equal((await node.daemon.cri.runtime.listContainers()).containers.length, 0);
      await assertReplays(node.daemon);
    });
  });
