/**
 * ExecSync on the real parts where something goes wrong: clients that go away, a daemon that is killed, time that is
 * up, and output without end.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { ContainerState } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { noLeftovers, processes } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, inParallel, removePod, runPod } from '../support/pods.ts';

const mib = 1024 * 1024;
const outputTotalMib = 8;

/** Pids of living processes with exactly this command line. */
const running = async (commandLine: string): Promise<number[]> =>
  (await processes()).filter((found) => found.commandLine === commandLine).map(({ pid }) => pid);
/** A command that no other run of this file has, so that its processes are known by it. */
const sleeper = (() => {
  let last = process.pid * 100;
  return () => `sleep ${(last += 1)}`;
})();

const high = async (pid: number): Promise<number> =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

describe('ExecSync', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let podSandboxId: string;
  let containerId: string;

  before(async () => {
    node = await startNode(owner, {
      config: `[limits]\nexec_output_total = "${outputTotalMib}MiB"\n[serve]\ndrain_timeout = "60s"\n`,
    });
    ({ podSandboxId, containerId } = await runPod(node.daemon, 'execs', busyboxName, ['sleep', '1000']));
  });

  const there = (what: string, commandLine: string, count: number): Promise<unknown> =>
    eventually(what, async () => (await running(commandLine)).length === count, 30_000);

  test('a command without timeout ends when its client goes, with what it has started', async () => {
    const line = sleeper();
    const gone = new AbortController();
    const cmd = ['sh', '-c', `${line} & (setsid ${line} &) ; ${line}`];
    const call = node.daemon.cri.runtime.execSync({ containerId, cmd }, { signal: gone.signal });
    const cancelled = assert.rejects(call, (error) => codeOf(error) === GrpcCode.CANCELLED);
    await there('the command and its children', line, 3);
    gone.abort();
    await cancelled;
    await there('nothing of the command', line, 0);
  });

  test('a second signal, also of the other kind, ends a daemon at once that waits for its calls', async () => {
    const { daemon } = node;
    const line = sleeper();
    const lost = assert.rejects(daemon.cri.runtime.execSync({ containerId, cmd: ['sh', '-c', line] }));
    await there('the command', line, 1);
    process.kill(daemon.pid(), 'SIGTERM');
    await eventually('the end', async () => daemon.log().includes('ending; pods stay'), 10_000);
    process.kill(daemon.pid(), 'SIGINT');
    assert.equal(await Promise.race([daemon.ended(), sleep(10_000, 'it goes on', { ref: false })]), 'SIGINT');
    await lost;
    await daemon.start();
    await there('nothing of the command', line, 0);
  });

  test('a restart of the daemon ends a command without timeout, with what it has started', async () => {
    const { daemon } = node;
    const line = sleeper();
    const call = daemon.cri.runtime.execSync({
      containerId,
      cmd: ['sh', '-c', `${line} & (setsid ${line} &) ; ${line}`],
    });
    const lost = assert.rejects(call);
    await there('the command and its children', line, 3);
    await daemon.kill();
    await lost;
    await daemon.start();
    await there('nothing of the command', line, 0);
    const { exitCode } = await daemon.cri.runtime.execSync({ containerId, cmd: ['true'], timeout: '30' });
    assert.equal(exitCode, 0);
  });

  test('a daemon that is told to end answers for a command under way first, and its container runs on', async () => {
    const { daemon } = node;
    const line = sleeper();
    const call = daemon.cri.runtime.execSync({ containerId, cmd: ['sh', '-c', `${line}; echo woken`] });
    await there('the command', line, 1);
    const ended = daemon.stop();
    await eventually('new calls to be refused', () =>
      daemon.cri.runtime.version().then(
        () => false,
        (error: unknown) => codeOf(error) === GrpcCode.UNAVAILABLE,
      ),
    );
    for (const pid of await running(line)) process.kill(pid, 'SIGTERM');
    assert.equal((await call).stdout.toString(), 'woken\n');
    assert.equal(await ended, 0);
    await daemon.start();
    const { containers } = await daemon.cri.runtime.listContainers({ filter: { id: containerId } });
    assert.deepEqual(
      containers.map(({ state }) => state),
      [ContainerState.CONTAINER_RUNNING],
    );
  });

  test('a command whose time is up is killed with all that it has started', async () => {
    const line = sleeper();
    const cmd = [
      'sh',
      '-c',
      `${line} & (${line} &); (setsid ${line} &); setsid sh -c "${line} & exec ${line}" & ${line}`,
    ];
    await assert.rejects(
      node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '3' }),
      withCode(GrpcCode.DEADLINE_EXCEEDED, /3000 ms/),
    );
    assert.deepEqual(await running(line), []);
  });

  test('output that fits no answer is cut with a mark, and the command is answered for', async () => {
    const exec = (script: string) =>
      node.daemon.cri.runtime.execSync({ containerId, cmd: ['sh', '-c', script], timeout: '60' });
    const whole = await exec('yes | head -c 3000000; exit 4');
    assert.deepEqual([whole.stdout.length, whole.exitCode], [3_000_000, 4]);
    const cut = await exec(`yes | head -c ${16 * mib}; echo end >&2; exit 5`);
    assert.deepEqual([cut.stderr.toString(), cut.exitCode], ['end\n', 5]);
    assert.match(cut.stdout.subarray(-300).toString(), /\nscribe: output is cut here, after \d+ bytes; \d+ bytes more/);
  });

  test('memory for the output of all commands under way is bounded', async () => {
    const { daemon } = node;
    const before = await high(daemon.pid());
    const cmd = ['sh', '-c', 'yes | head -c 12000000; sleep 1; exit 6'];
    const replies = await inParallel(24, [...Array(24).keys()], () =>
      daemon.cri.runtime.execSync({ containerId, cmd, timeout: '60' }),
    );
    assert.deepEqual([...new Set(replies.map(({ exitCode }) => exitCode))], [6]);
    const cut = replies.filter(({ stdout }) => stdout.subarray(-300).includes('limits.exec_output_total'));
    // Each alone would take more than all may.
    assert.equal(cut.length, replies.length);
    // 288 MB were written, and would be held several times over.
    const grownMib = (await high(daemon.pid())) - before;
    assert.ok(grownMib < 140, `the daemon grew by ${grownMib} MiB`);
    const { stdout } = await daemon.cri.runtime.execSync({ containerId, cmd: ['echo', 'well'], timeout: '30' });
    assert.equal(stdout.toString(), 'well\n');
  });

  test('when the pod is removed, nothing is left', async () => {
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
