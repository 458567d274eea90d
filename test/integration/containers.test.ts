/**
 * What containers do on the real parts: how they end and how that is told, commands run in them, their logs, and how
 * they are stopped.
 */
import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import {
  type ContainerConfig,
  type ContainerStatus,
  ContainerState,
  type DeepPartial,
} from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, removePod, statusOf } from '../support/pods.ts';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const outputBytesMax = 16 * 1024 * 1024;
const lineBytesMax = 4096;
const openFilesMax = 4321;

/** The line of /proc/<pid>/limits: its name, then soft and hard limit. */
const openFilesOf = async (pid: number | 'self'): Promise<string[]> => {
  const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
  return (limits.split('\n').find((line) => line.startsWith('Max open files')) ?? '').split(/ {2,}/);
};
/** The soft limit of this process, which what it starts inherits. */
const setOpenFiles = (soft: string): Promise<unknown> =>
  runOk(['prlimit', '--pid', String(process.pid), `--nofile=${soft}:`]);

describe('containers', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let podSandboxId: string;
  let logDirectory: string;
  let tools: string;
  let sandboxConfig: ReturnType<typeof podConfig>;

  before(async () => {
    // Node raises the soft limit for itself, here as in the daemon.
    const [, soft = ''] = await openFilesOf('self');
    await setOpenFiles(String(openFilesMax));
    tools = await tempDir(owner);
    const shim = 'containerd-shim-runc-v2';
    const real = (await runOk(['sh', '-c', `command -v ${shim}`])).trim();
    const noting = `#!/bin/sh\necho "$(ulimit -Sn) $(ulimit -Hn)" >>${tools}/limits\nexec ${real} "$@"\n`;
    await writeFile(join(tools, shim), noting, { mode: 0o755 });
    node = await startNode(owner, {
      config: `[logs]\nline_max = "${lineBytesMax}B"\n`,
      env: { PATH: `${tools}:${process.env['PATH']}` },
    });
    await setOpenFiles(soft);
    logDirectory = await tempDir(owner);
    sandboxConfig = podConfig(node.daemon, 'pod', { logDirectory });
    ({ podSandboxId } = await node.daemon.cri.runtime.runPodSandbox({ config: sandboxConfig }));
  });

  const create = async (
    name: string,
    script: string | readonly string[],
    overrides: DeepPartial<ContainerConfig> = {},
  ): Promise<string> => {
    const command = typeof script === 'string' ? ['sh', '-c', script] : script;
    const config = containerConfig(name, busyboxName, command, { logPath: `${name}.log`, ...overrides });
    const { runtime } = node.daemon.cri;
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    return containerId;
  };
  const start = async (...words: Parameters<typeof create>): Promise<string> => {
    const containerId = await create(...words);
    await node.daemon.cri.runtime.startContainer({ containerId });
    return containerId;
  };
  const ended = (containerId: string): Promise<ContainerStatus> =>
    eventually('its end', async () => {
      const status = await statusOf(node.daemon, containerId);
      return status.state === ContainerState.CONTAINER_EXITED && status;
    });
  const logOf = (name: string): Promise<string> => readFile(join(logDirectory, `${name}.log`), 'utf8').catch(() => '');
  const saysReady = (name: string): Promise<boolean> =>
    eventually(`${name} is ready`, async () => (await logOf(name)).includes('ready'));

  test('exit statuses are told as they are, with reasons that kubelet knows', async () => {
    const [completed, failed, signalled] = await Promise.all([
      start('completed', 'exit 0'),
      start('failed', 'exit 7'),
      start('signalled', 'kill -KILL $$'),
    ]);
    const told = await Promise.all([completed, failed, signalled].map(ended));
    assert.deepEqual(
      told.map(({ exitCode, reason }) => [exitCode, reason]),
      [
        [0, 'Completed'],
        [7, 'Error'],
        [137, 'Error'],
      ],
    );
    for (const { startedAt, finishedAt } of told) assert.ok(BigInt(finishedAt) >= BigInt(startedAt));
  });

  /** The first line of what `scribe why` says. */
  const whyIs = async (containerId: string): Promise<string> => {
    const { stdout } = await node.daemon.scribe('why', `container:${containerId}`, '--root', node.daemon.dirs.root);
    return stdout.split('\n')[0] ?? '';
  };

  test('a container that takes more memory than its limit ends as OOMKilled', async () => {
    const linux = { resources: { memoryLimitInBytes: String(16 * 1024 * 1024) } };
    const containerId = await start('greedy', 'x=1; while :; do x=$x$x; done', { linux });
    const { exitCode, reason } = await ended(containerId);
    assert.deepEqual([exitCode, reason], [137, 'OOMKilled']);
    // At most the limit was used, to a page.
    const cause = /was killed by the kernel, out of memory: its limit is 16\.0 MiB, at most 1[56]\.\d MiB used/;
    assert.match(await whyIs(containerId), cause);
  });

  test('a command that is not there fails the start, and the container is EXITED with 128 and StartError', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await create('absent', ['/no/such/program']);
    await assert.rejects(runtime.startContainer({ containerId }), withCode(GrpcCode.UNKNOWN, /no such file/));
    const { state, exitCode, reason, message } = await statusOf(node.daemon, containerId);
    assert.deepEqual([state, exitCode, reason], [ContainerState.CONTAINER_EXITED, 128, 'StartError']);
    assert.match(message, /\/no\/such\/program/);
    assert.match(await whyIs(containerId), /could not be started: .*\/no\/such\/program/);
    await runtime.removeContainer({ containerId });
  });

  test('a container is started once', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('once', ['sleep', '1000']);
    const again = withCode(GrpcCode.FAILED_PRECONDITION, /CONTAINER_RUNNING/);
    await assert.rejects(runtime.startContainer({ containerId }), again);
    await runtime.removeContainer({ containerId });
    await assert.rejects(runtime.startContainer({ containerId }), withCode(GrpcCode.NOT_FOUND, /container_id/));
  });

  test('a command in a container has its own output and exit code', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('host', ['sleep', '1000'], {
      envs: [{ key: 'COLOUR', value: Buffer.from('blue') }],
      workingDir: '/tmp',
    });
    const cmd = ['sh', '-c', 'echo $COLOUR in $PWD; echo oops >&2; exit 42'];
    const { stdout, stderr, exitCode } = await runtime.execSync({ containerId, cmd, timeout: '10' });
    assert.deepEqual([stdout.toString(), stderr.toString(), exitCode], ['blue in /tmp\n', 'oops\n', 42]);
    await assert.rejects(
      runtime.execSync({ containerId, cmd: ['/no/such/program'], timeout: '10' }),
      withCode(GrpcCode.UNKNOWN, /no such file/),
    );
  });

  test('a user other than root keeps ambient capabilities, and commands in its container have them', async () => {
    const securityContext = {
      runAsUser: { value: '1000' },
      noNewPrivs: true,
      capabilities: { dropCapabilities: ['ALL'], addAmbientCapabilities: ['NET_BIND_SERVICE'] },
    };
    const bind = (0x400).toString(16).padStart(16, '0');
    const sets = ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((name) => `Cap${name}:\t${bind}\n`).join('');
    const containerId = await start('ambient', 'grep Cap /proc/self/status; exec sleep 100', {
      linux: { securityContext },
    });
    await eventually('its capabilities', async () => (await logOf('ambient')).includes(`CapAmb:\t${bind}`));
    const cmd = ['grep', 'Cap', '/proc/self/status'];
    const { stdout } = await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '20' });
    assert.equal(Buffer.from(stdout).toString(), sets);
  });

  test('a command that takes too long is killed, with all its children, and answered with DeadlineExceeded', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('slow', ['sleep', '1000']);
    const startedMs = performance.now();
    await assert.rejects(
      runtime.execSync({ containerId, cmd: ['sh', '-c', 'sleep 987 & (setsid sleep 988 &); sleep 989'], timeout: '1' }),
      withCode(GrpcCode.DEADLINE_EXCEEDED, /1000 ms/),
    );
    assert.ok(performance.now() - startedMs < 5000);
    const { stdout } = await runtime.execSync({ containerId, cmd: ['ps', '-o', 'args'] });
    assert.doesNotMatch(stdout.toString(), /sleep 98/);
    assert.match(stdout.toString(), /sleep 1000/);
  });

  test('of more output than a message can hold the beginning is kept', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('chatty', ['sleep', '1000']);
    const cmd = ['sh', '-c', 'yes 0123456789abcde | head -c 9000000; echo done >&2'];
    const { stdout, stderr, exitCode } = await runtime.execSync({ containerId, cmd, timeout: '60' });
    assert.deepEqual([stdout.length, stderr.toString(), exitCode], [9_000_000, 'done\n', 0]);
    const endless = ['sh', '-c', 'yes | head -c 40000000; exit 9'];
    const told = await runtime.execSync({ containerId, cmd: endless, timeout: '60' });
    assert.equal(told.exitCode, 9);
    assert.ok(told.stdout.length > 9_000_000 && told.stdout.length <= outputBytesMax, `${told.stdout.length} bytes`);
    assert.match(told.stdout.subarray(-300).toString(), /scribe: output is cut here/);
    const after = await runtime.execSync({ containerId, cmd: ['echo', 'well'], timeout: '10' });
    assert.equal(after.stdout.toString(), 'well\n');
  });

  test('commands run only in a running container', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await create('unstarted', ['sleep', '1000']);
    const exec = () => runtime.execSync({ containerId, cmd: ['true'], timeout: '10' });
    await assert.rejects(exec(), withCode(GrpcCode.FAILED_PRECONDITION, /CONTAINER_CREATED/));
    await runtime.startContainer({ containerId });
    assert.equal((await exec()).exitCode, 0);
    await runtime.stopContainer({ containerId, timeout: '0' });
    await assert.rejects(exec(), withCode(GrpcCode.FAILED_PRECONDITION, /CONTAINER_EXITED/));
  });

  // What containers get is the shim's doing: older ones hand on the limit that Go raised for them.
  test('have a shim with the limit of open files that the daemon was started with, not the one that Node raised', async () => {
    await start('limits', 'sleep 100');
    const [, , hard = ''] = await openFilesOf('self');
    const noted = (await readFile(join(tools, 'limits'), 'utf8')).trimEnd().split('\n');
    assert.deepEqual(new Set(noted), new Set([`${openFilesMax} ${hard}`]));
    assert.equal((await openFilesOf(node.daemon.pid()))[1], hard);
  });

  test('the log has both streams line by line, splits long lines and marks an unfinished one', async () => {
    const long = `head -c ${lineBytesMax + 100} /dev/zero | tr '\\0' x; echo`;
    const containerId = await start('log', `echo out; sleep 0.2; echo err >&2; sleep 0.2; ${long}; printf end`);
    await ended(containerId);
    const log = await eventually('the whole log', async () => {
      const text = await logOf('log');
      return text.endsWith('end\n') && text;
    });
    const lines = log.trimEnd().split('\n');
    assert.deepEqual(
      lines.map((line) => {
        const [at = '', stream, tag, ...words] = line.split(' ');
        assert.match(at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(Z|[+-]\d\d:\d\d)$/);
        const text = words.join(' ');
        return [stream, tag, text.length > 10 ? text.length : text];
      }),
      [
        ['stdout', 'F', 'out'],
        ['stderr', 'F', 'err'],
        ['stdout', 'P', lineBytesMax],
        ['stdout', 'F', 100],
        ['stdout', 'P', 'end'],
      ],
    );
  });

  test('a reopened log goes on in a new file, and the old one gets nothing more', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('rotated', 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done');
    const path = join(logDirectory, 'rotated.log');
    await eventually('lines', async () => (await logOf('rotated')).includes(' F 5\n'));
    await rename(path, `${path}.1`);
    await runtime.reopenContainerLog({ containerId });
    const old = await readFile(`${path}.1`, 'utf8');
    await eventually('lines in the new file', async () => (await logOf('rotated')).split('\n').length > 5);
    assert.equal(await readFile(`${path}.1`, 'utf8'), old);
    await runtime.stopContainer({ containerId, timeout: '0' });
    const numbers = `${old}${await logOf('rotated')}`
      .trimEnd()
      .split('\n')
      .map((line) => Number(line.split(' ')[3]));
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index + 1),
    );
    const closed = withCode(GrpcCode.FAILED_PRECONDITION, /not running/);
    await assert.rejects(runtime.reopenContainerLog({ containerId }), closed);
  });

  test('a stop gives the container its time, then kills it', async () => {
    const { runtime } = node.daemon.cri;
    const polite = await start('polite', 'trap "exit 3" TERM; echo ready; while :; do sleep 0.05; done');
    const deaf = await start('deaf', 'trap "" TERM; echo ready; while :; do sleep 0.05; done');
    await Promise.all(['polite', 'deaf'].map(saysReady));
    await runtime.stopContainer({ containerId: polite, timeout: '30' });
    const startedMs = performance.now();
    await runtime.stopContainer({ containerId: deaf, timeout: '1' });
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs >= 990 && tookMs < 5000, `${tookMs} ms`);
    assert.deepEqual([(await ended(polite)).exitCode, (await ended(deaf)).exitCode], [3, 137]);
    // Again, as kubelet does: nothing to do.
    await runtime.stopContainer({ containerId: deaf, timeout: '1' });
  });

  test('C4: a stop with grace 0 overtakes one that waits 30 s, and both are answered', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('stubborn', 'trap "echo not yet" TERM; echo ready; while :; do sleep 0.05; done');
    await saysReady('stubborn');
    const startedMs = performance.now();
    const patient = runtime.stopContainer({ containerId, timeout: '30' });
    await eventually('the signal', async () => (await logOf('stubborn')).includes('not yet'));
    await runtime.stopContainer({ containerId, timeout: '0' });
    await patient;
    assert.ok(performance.now() - startedMs < 10_000);
    const { exitCode } = await ended(containerId);
    assert.equal(exitCode, 137);
    assert.equal((await logOf('stubborn')).match(/not yet/g)?.length, 1);
  });

  test('a running container that is removed is killed first', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('removed', ['sleep', '1000']);
    await runtime.removeContainer({ containerId });
    await assert.rejects(statusOf(node.daemon, containerId), withCode(GrpcCode.NOT_FOUND, /container_id/));
    await runtime.removeContainer({ containerId });
  });

  test('usage is told of running containers', async () => {
    const { runtime } = node.daemon.cri;
    const containerId = await start('busy', 'while :; do :; done', { labels: { usage: 'told' } });
    const { stats } = await eventually('usage', async () => {
      const reply = await runtime.containerStats({ containerId });
      return Number(reply.stats?.cpu?.usageCoreNanoSeconds?.value ?? 0) > 0 && reply;
    });
    assert.ok(Number(stats?.memory?.workingSetBytes?.value) > 0);
    const listed = await runtime.listContainerStats({ filter: { labelSelector: { usage: 'told' } } });
    assert.deepEqual(
      listed.stats.map(({ attributes }) => attributes?.id),
      [containerId],
    );
    await runtime.stopContainer({ containerId, timeout: '0' });
  });

  test('when the pod is removed with all that happened in it, nothing is left', async () => {
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
