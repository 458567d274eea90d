/**
 * kill -9 of a daemon with many pods: how soon it answers rightly again, what it knows of containers that ended
 * meanwhile, and whether logs are whole. SCRIBE_PODS sets how many pods (100). Runs alone: it measures.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { criClient } from '../../scripts/lib/cri-client.ts';
import { ContainerState, type ListContainersResponse } from '../../src/wire/cri/api.ts';
import { agreement } from '../support/agreement.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { type Daemon, shimsKept } from '../support/daemon.ts';
import { stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, inParallel, ownPids, removePod, runPod, statusOf } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';
import { liveTaskOf } from '../../src/domain/model/container-state.ts';

const pods = Number(process.env['SCRIBE_PODS'] ?? 100);
const atOnce = 6;
const restarts = 3;
/** Kills under the eyes of the counting container. */
const kills = 10;
/**
 * What is wanted is 600 on a quiet machine of today. Slower ones need 1,200, all of it processor time, and other work
 * beside it makes the answer later still.
 */
const firstAnswerMsMax = 4000;
const firstAnswerProcessorMsMax = 2500;
const MS_PER_TICK = 10;
const { CONTAINER_RUNNING, CONTAINER_EXITED } = ContainerState;

const canConnect = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** What all threads of a process have had of the processors (proc(5), stat). */
const processorMsOf = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const [user = '', system = ''] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11);
  return (Number(user) + Number(system)) * MS_PER_TICK;
};

interface FirstAnswer {
  /** From exec to the answer. */
  readonly tookMs: number;
  readonly processorMs: number;
  readonly list: ListContainersResponse;
}

/** Starts the daemon and asks for all containers as soon as anybody can. */
const startAndList = async (daemon: Daemon): Promise<FirstAnswer> => {
  const startedMs = performance.now();
  await daemon.launch();
  while (!(await canConnect(daemon.socket))) {
    if (performance.now() - startedMs > 30_000) throw new Error(`nobody listens:\n${daemon.log()}`);
    await sleep(2);
  }
  const cri = criClient(daemon.socket);
  try {
    const list = await cri.runtime.listContainers();
    const tookMs = performance.now() - startedMs;
    return { tookMs, processorMs: await processorMsOf(daemon.pid()), list };
  } finally {
    cri.close();
  }
};

const statesIn = ({ containers }: ListContainersResponse): Map<string, ContainerState> =>
  new Map(containers.map(({ id, state }) => [id, state]));

const isGone = (pid: number) => async (): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat === null || stat.includes(') Z ');
};

describe(`${pods} containers in ${pods} pods, and the daemon is killed`, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let signals: string;
  let made: readonly { readonly podSandboxId: string; readonly containerId: string }[];

  before(async () => {
    node = await startNode(owner, { keptShims: shimsKept });
    signals = await tempDir(owner);
    // The first waits to be told to end with 37; all others stay.
    const waits = ['sh', '-c', 'while [ ! -e /signals/go ]; do sleep 0.1; done; exit 37'];
    const mounts = [{ containerPath: '/signals', hostPath: signals, readonly: true }];
    made = await inParallel(atOnce, Array.from({ length: pods }), (_, index) => {
      // Half of them with a pause task.
      const pod = index % 2 === 0 ? ownPids : {};
      return index === 0
        ? runPod(node.daemon, 'waits', busyboxName, waits, { pod, container: { mounts } })
        : runPod(node.daemon, `stays-${index}`, busyboxName, ['sleep', '100000'], { pod });
    });
  });

  test('C18: its first answer after a restart is right, and soon; ends it did not see are told truly', async (t) => {
    const { daemon } = node;
    const [waiting, doomed] = made;
    assert.ok(waiting && doomed);
    const expected = new Map(made.map(({ containerId }) => [containerId, CONTAINER_RUNNING as ContainerState]));
    assert.deepEqual(statesIn(await daemon.cri.runtime.listContainers()), expected);
    const before = stateOf(daemon);
    const pidOf = (id: string): number => liveTaskOf(before.containers.get(id))?.pid ?? 0;

    await daemon.kill();
    await writeFile(join(signals, 'go'), '');
    await eventually('the waiting container ends', isGone(pidOf(waiting.containerId)));
    process.kill(before.sandboxes.get(doomed.podSandboxId)?.shim?.pid ?? 0, 'SIGKILL');
    process.kill(pidOf(doomed.containerId), 'SIGKILL');
    await eventually('the doomed container ends', isGone(pidOf(doomed.containerId)));
    expected.set(waiting.containerId, CONTAINER_EXITED).set(doomed.containerId, CONTAINER_EXITED);

    const times: number[] = [];
    const processorTimes: number[] = [];
    for (let round = 0; round < restarts; round += 1) {
      const { tookMs, processorMs, list } = await startAndList(daemon);
      times.push(Math.round(tookMs));
      processorTimes.push(processorMs);
      assert.deepEqual(statesIn(list), expected);
      const exited = await statusOf(daemon, waiting.containerId);
      assert.deepEqual([exited.exitCode, exited.reason], [37, 'Error']);
      const lost = await statusOf(daemon, doomed.containerId);
      assert.deepEqual([lost.exitCode, lost.reason], [255, 'Unknown']);
      assert.match(lost.message, /shim/);
      if (round < restarts - 1) await daemon.kill();
    }
    t.diagnostic(`ms from exec to the first right ListContainers with ${pods} containers: ${times.join(', ')}`);
    t.diagnostic(`ms of processor time in these: ${processorTimes.join(', ')}`);
    assert.ok(Math.min(...times) <= firstAnswerMsMax, `${times.join(', ')} ms`);
    assert.ok(Math.min(...processorTimes) <= firstAnswerProcessorMsMax, `${processorTimes.join(', ')} ms`);
    await agreement(daemon);
  });

  test(`C16: a container that counts to its log shows no gap and no double over ${kills} kills`, async (t) => {
    const { daemon } = node;
    const logDirectory = join(await tempDir(t), 'logs');
    await mkdir(logDirectory);
    const path = join(logDirectory, 'count.log');
    // 50 lines every 50 ms, written at once.
    const count = `awk 'BEGIN { for (;;) { for (i = 0; i < 50; i++) print ++n; fflush(); system("sleep 0.05") } }'`;
    const { containerId, podSandboxId } = await runPod(daemon, 'counts', busyboxName, ['sh', '-c', count], {
      pod: { logDirectory },
      container: { logPath: 'count.log' },
    });
    const startedMs = performance.now();
    const rotated: string[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      await sleep(Math.random() * 400);
      await daemon.kill();
      await sleep(Math.random() * 200);
      await daemon.start();
      // Rotated as kubelet does it, every few restarts.
      if (kill % 4 !== 3) continue;
      rotated.push(`${path}.${kill}`);
      await rename(path, `${path}.${kill}`);
      await daemon.cri.runtime.reopenContainerLog({ containerId });
    }
    await daemon.cri.runtime.stopContainer({ containerId, timeout: '0' });
    const seconds = (performance.now() - startedMs) / 1000;
    const texts = await Promise.all([...rotated, path].map((file) => readFile(file, 'utf8')));
    const lines = texts.join('').trimEnd().split('\n');
    const wrong = lines.findIndex((line, index) => !line.endsWith(` stdout F ${index + 1}`));
    assert.equal(wrong, -1, `line ${wrong + 1}: ${lines.slice(Math.max(0, wrong - 2), wrong + 3).join('\n')}`);
    t.diagnostic(`${lines.length} lines in ${seconds.toFixed(1)} s, ${Math.round(lines.length / seconds)} a second`);
    assert.ok(lines.length > kills * 100);
    await removePod(daemon, podSandboxId);
  });

  test('C19: a command and a stop that were under way are ended and carried on without anybody asking again', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const deaf = ['sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done'];
    const stopping = await runPod(daemon, 'deaf', busyboxName, deaf, {}, t);
    const { containerId } = await runPod(daemon, 'runs-a-command', busyboxName, ['sleep', '100000'], {}, t);
    const processesIn = async (id: string): Promise<string> => {
      const { stdout } = await runtime.execSync({ containerId: id, cmd: ['ps', '-o', 'args'], timeout: '10' });
      return stdout.toString();
    };
    const stop = runtime.stopContainer({ containerId: stopping.containerId, timeout: '3' });
    const command = runtime.execSync({ containerId, cmd: ['sleep', '4321'] });
    const interrupted = Promise.allSettled([stop, command]);
    await eventually('the command runs', async () => (await processesIn(containerId)).includes('sleep 4321'));
    await daemon.kill();
    assert.deepEqual(
      (await interrupted).map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    await daemon.start();
    await eventually('the command is ended', async () => !(await processesIn(containerId)).includes('sleep 4321'));
    assert.equal((await statusOf(daemon, containerId)).state, CONTAINER_RUNNING);
    const stopped = await eventually('the container is killed after its grace', async () => {
      const status = await statusOf(daemon, stopping.containerId);
      return status.state === CONTAINER_EXITED && status;
    });
    assert.deepEqual([stopped.exitCode, stopped.reason], [137, 'Error']);
  });

  test('all of them can be removed, and nothing is left', async () => {
    const { daemon } = node;
    await inParallel(atOnce, made, ({ podSandboxId }) => removePod(daemon, podSandboxId));
    // Shims that were kept are ended within seconds, the others were with their pods.
    await eventually('no shim is kept', async () => (await daemon.leftovers()).shims.length === 0);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    const { exitCode, stdout, stderr } = await daemon.scribe('verify', '--root', daemon.dirs.root);
    assert.equal(exitCode, 0, stdout + stderr);
  });
});
