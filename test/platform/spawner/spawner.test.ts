/**
 * The spawner with real programs, mounts and namespaces (root is needed): what it runs, how it bounds it, and what
 * becomes of it all when the daemon or the spawner itself is killed.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { before, describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureError, type FailureReason } from '../../../src/domain/model/errors.ts';
import { readMountInfo } from '../../../src/platform/linux/mounts.ts';
import { isAlive, readProcessStat } from '../../../src/platform/linux/processes.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { RunRequest } from '../../../src/platform/spawner/types.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { withReason } from '../../support/failures.ts';
import { requireRoot } from '../../support/netns.ts';
import { runOk, startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';
import type { StandInReport } from './daemon-stand-in.ts';
import { endOf, KiB, request, shell, spawnerOf, text } from './support.ts';

const timeout = 25_000;
const standIn = join(import.meta.dirname, 'daemon-stand-in.ts');

before(requireRoot);

describe('run', () => {
  it('gives a program its arguments, environment, directory and input, and nothing else', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const result = await spawner.run(
      request('sh', ['-c', 'pwd; cat /dev/stdin; echo "$1" >&2; cat /proc/self/environ; exit 3', 'sh', 'a  b\n"c"'], {
        env: { PATH: '/usr/bin:/bin', NAME: 'ü\nx' },
        cwd: '/usr',
        stdin: Buffer.from('input\n'),
      }),
    );
    assert.match(text(result.stdout), /^\/usr\ninput\n/);
    const variables = text(result.stdout).slice('/usr\ninput\n'.length).split('\0').filter(Boolean);
    assert.deepEqual(variables.toSorted(), ['NAME=ü\nx', 'PATH=/usr/bin:/bin', 'PWD=/usr']);
    assert.equal(text(result.stderr), 'a  b\n"c"\n');
    assert.equal(result.exitCode, 3);
    assert.equal(result.signalName, null);
    assert.equal(result.timedOut, false);
    assert.equal(result.truncated, false);
  });

  it('runs in a session of its own, with no signal blocked, ignored or handled', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const { stdout } = await spawner.run(
      shell('echo $$; cut -d" " -f5,6 /proc/$$/stat; grep "^Sig[BI]" /proc/self/status'),
    );
    const [pid, ids, ...masks] = text(stdout).trim().split('\n');
    assert.equal(ids, `${pid} ${pid}`);
    assert.deepEqual(
      masks.map((mask) => mask.replace(/\s+/, ' ')),
      ['SigBlk: 0000000000000000', 'SigIgn: 0000000000000000'],
    );
  });

  it('tells of an end by a signal', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const result = await spawner.run(shell('kill -TERM $$'));
    assert.deepEqual([result.exitCode, result.signalName], [null, 'SIGTERM']);
  });

  it('kills the whole group when the time is over', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const result = await spawner.run(shell('sleep 300 & echo $!; wait', { timeoutMs: 300 }));
    assert.equal(result.timedOut, true);
    assert.equal(result.signalName, 'SIGKILL');
    await endOf(Number(text(result.stdout)));
  });

  it('kills the whole group when the caller gives up', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const abort = new AbortController();
    let pids: number[] = [];
    const run = spawner.run(
      shell('sleep 300 & echo $$ $!; wait', {
        signal: abort.signal,
        onStdout: (chunk) => {
          pids = text(chunk).trim().split(' ').map(Number);
          abort.abort();
        },
      }),
    );
    await assert.rejects(run, withReason('Cancelled', /sh was cancelled/));
    assert.equal(pids.length, 2);
    await Promise.all(pids.map(endOf));
    await assert.rejects(spawner.run(shell('true', { signal: abort.signal })), withReason('Cancelled', /cancelled/));
  });

  it('drops output beyond its bound and lets the program go on', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const result = await spawner.run(shell('head -c 1000000 /dev/zero; echo end >&2', { outputBytesMax: 1000 }));
    assert.equal(result.stdout.length, 1000);
    assert.equal(result.truncated, true);
    assert.equal(text(result.stderr), 'end\n');
    assert.equal(result.exitCode, 0);
  });

  it('passes much input and output through, the reader being slow or not reading at all', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const stdin = Buffer.alloc(8 * KiB * KiB, 'abcdefgh');
    let received = 0;
    const result = await spawner.run(
      request('cat', [], {
        stdin,
        outputBytesMax: stdin.length,
        onStdout: (chunk) => {
          received += chunk.length;
        },
      }),
    );
    assert.equal(received, stdin.length);
    assert.equal(result.stdout.length, 0);
    assert.equal((await spawner.run(request('true', [], { stdin }))).exitCode, 0);
  });

  it('ends with the program although something it left behind holds its output open', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const result = await spawner.run(shell('sleep 300 & echo $!'));
    assert.equal(result.exitCode, 0);
    process.kill(Number(text(result.stdout)), 'SIGKILL');
  });

  it('looks a program up in the directories that it is told, and nowhere else', { timeout }, async (t) => {
    const dir = await tempDir(t);
    const spawner = await spawnerOf(t, dir);
    const directories = ['missing', 'of-directories', 'of-files', 'first', 'second'].map((name) => join(dir, name));
    const [, ofDirectories = '', ofFiles = '', ...ofPrograms] = directories;
    await mkdir(join(ofDirectories, 'named'), { recursive: true });
    for (const path of [ofFiles, ...ofPrograms]) await mkdir(path);
    await writeFile(join(ofFiles, 'named'), '', { mode: 0o644 });
    for (const path of ofPrograms) await symlink('/bin/sh', join(path, 'named'));
    const { stdout } = await spawner.run(request('named', ['-c', 'echo $0'], { directories }));
    assert.equal(text(stdout), `${join(dir, 'first', 'named')}\n`);
    const missing = spawner.run(request('true', [], { directories }));
    await assert.rejects(missing, withReason('HostLacks', /true.*ENOENT/));
  });

  it('refuses what cannot be started, saying why', { timeout }, async (t) => {
    const dir = await tempDir(t);
    const spawner = await spawnerOf(t, dir);
    await writeFile(join(dir, 'plain'), '');
    const refusals: [RunRequest, FailureReason, RegExp][] = [
      [request('no-such-program'), 'HostLacks', /no-such-program.*ENOENT/],
      [request('/no/such/program'), 'HostLacks', /\/no\/such\/program.*ENOENT/],
      [request(join(dir, 'plain')), 'HostLacks', /plain.*EACCES/],
      [request('true', [], { cwd: '/no/such/directory' }), 'HostLacks', /in '\/no\/such\/directory'/],
      [request('true', ['a\0b']), 'HostFailed', /NUL/],
      [request('true', [], { env: { PATH: '/bin:/usr/bin', X: '\0' } }), 'HostFailed', /NUL/],
    ];
    for (const [refused, reason, message] of refusals) {
      await assert.rejects(spawner.run(refused), withReason(reason, message));
    }
  });

  it('runs many at once and keeps their output apart', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const numbers = Array.from({ length: 100 }, (_, index) => `${index}`);
    const results = await Promise.all(
      numbers.map((number) =>
        spawner.run(request('sh', ['-c', 'cat; echo $0 >&2; exit $0', number], { stdin: Buffer.from(number) })),
      ),
    );
    assert.deepEqual(
      results.map((result) => text(result.stdout)),
      numbers,
    );
    assert.deepEqual(
      results.map((result) => text(result.stderr).trim()),
      numbers,
    );
    assert.deepEqual(
      results.map((result) => `${result.exitCode}`),
      numbers,
    );
  });

  it('C15: costs the event loop next to nothing', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    await spawner.run(request('/bin/true'));
    // What spawning costs grows with the memory of the one who does it: this is a daemon of some size.
    const ballast = Buffer.alloc(200 * KiB * KiB, 1);
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const [calls, whole]: [number[], number[]] = [[], []];
    for (let round = 0; round < 100; round += 1) {
      const before = performance.now();
      const run = spawner.run(request('/bin/true'));
      calls.push(performance.now() - before);
      await run;
      whole.push(performance.now() - before);
    }
    delay.disable();
    const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
    t.diagnostic(
      `run('/bin/true') beside ${ballast.length / KiB / KiB} MiB: call ${median(calls).toFixed(3)} ms, ` +
        `whole ${median(whole).toFixed(2)} ms (medians), loop delay p99 ${(delay.percentile(99) / 1e6).toFixed(1)} ms`,
    );
    assert.ok(median(calls) < 1, 'calling run takes a millisecond or more of the event loop');
  });
});

describe('mounts and namespaces', () => {
  it('mounts and unmounts, and takes an unmounted target for done', { timeout }, async (t) => {
    const dir = await tempDir(t);
    const spawner = await spawnerOf(t, dir);
    const options = ['nosuid', 'nodev', 'noexec', 'mode=1777', 'size=65536'];
    const mountsThere = async (): Promise<string[]> =>
      (await readMountInfo()).filter((mount) => mount.mountPoint === dir).map((mount) => mount.options.join());
    await spawner.mount({ source: 'shm', target: dir, type: 'tmpfs', options });
    await spawner.mount({ source: 'shm', target: dir, type: 'tmpfs', options });
    const [mounted] = await mountsThere();
    for (const flag of ['nosuid', 'nodev', 'noexec']) assert.match(mounted ?? '', new RegExp(flag));
    assert.equal((await stat(dir)).mode & 0o7777, 0o1777);
    await spawner.unmount(dir);
    assert.deepEqual(await mountsThere(), []);
    await spawner.unmount(dir);
    await spawner.unmount(join(dir, 'nothing'));
    await assert.rejects(
      spawner.mount({ source: 'x', target: join(dir, 'nothing'), type: 'tmpfs', options }),
      withReason('HostFailed', /ENOENT.*mount tmpfs/),
    );
  });

  it('takes pins away, with the files they were made at, as often as it is asked to', { timeout }, async (t) => {
    const dir = await tempDir(t);
    const spawner = await spawnerOf(t, dir);
    const pins = ['one', 'two'].map((name) => join(dir, 'netns', name));
    for (const pin of pins) await spawner.createNetns(pin);
    const isPinned = async (): Promise<boolean[]> => {
      const points = (await readMountInfo()).map(({ mountPoint }) => mountPoint);
      return pins.map((pin) => points.includes(pin));
    };
    assert.deepEqual(await isPinned(), [true, true]);
    for (let round = 0; round < 2; round += 1) await spawner.unpin(pins);
    assert.deepEqual([await isPinned(), await readdir(join(dir, 'netns'))], [[false, false], []]);
  });

  it('makes a network namespace with loopback up, that outlives the spawner', { timeout }, async (t) => {
    const dir = await tempDir(t);
    const spawner = await spawnerOf(t, dir);
    const path = join(dir, 'netns');
    onCleanup(t, async () => void (await runOk(['umount', path])));
    const home = await readlink(`/proc/${spawner.pid}/ns/net`);
    await spawner.createNetns(path);
    const made = (await stat(path)).ino;
    await spawner.createNetns(path);
    assert.equal((await stat(path)).ino, made, 'doing it again makes no other');
    assert.equal(await readlink(`/proc/${spawner.pid}/ns/net`), home);
    assert.equal(text((await spawner.run(shell('readlink /proc/self/ns/net'))).stdout).trim(), home);
    await spawner.close();
    const stdout = await runOk(['nsenter', `--net=${path}`, 'ip', '-brief', 'address']);
    assert.match(stdout, /^lo\s+UNKNOWN\s+127\.0\.0\.1\/8/);
    assert.equal(stdout.trim().split('\n').length, 1);
    assert.equal((await stat(path)).ino, made);
  });

  it('fails to make one where it cannot be pinned', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    await assert.rejects(spawner.createNetns('/no/such/netns'), withReason('HostFailed', /ENOENT/));
  });
});

describe('the ends of daemon and spawner', () => {
  const startStandIn = async (t: TestContext, lockPath: string) => {
    // Descriptor 9 is one that the daemon was started with and knows nothing of.
    const daemon = await startProcess(t, ['sh', '-c', 'exec 9</; exec "$0" "$@"', process.execPath, standIn, lockPath]);
    const [line] = await daemon.until(/\{.*\}/);
    return { daemon, report: JSON.parse(line) as StandInReport };
  };

  it('C15: what it starts has no descriptor but its standard streams', { timeout }, async (t) => {
    const { report } = await startStandIn(t, join(await tempDir(t), 'spawner.lock'));
    onCleanup(t, () => void process.kill(report.detached.pid, 'SIGKILL'));
    for (const pid of [report.detached.pid, ...report.runPids]) {
      assert.deepEqual((await readdir(`/proc/${pid}/fd`)).toSorted(), ['0', '1', '2']);
    }
  });

  it('C15: when the daemon is killed, what it had run is killed before the next daemon has a spawner', {
    timeout,
  }, async (t) => {
    const dir = await tempDir(t);
    const lockPath = join(dir, 'spawner.lock');
    const { daemon, report } = await startStandIn(t, lockPath);
    onCleanup(t, () => void process.kill(report.detached.pid, 'SIGKILL'));
    assert.equal((await readFile(lockPath, 'utf8')).trim(), `${report.spawnerPid}`);
    daemon.kill('SIGKILL');
    const spawner = await spawnerOf(t, dir);
    for (const pid of report.runPids) {
      const left = await readProcessStat(pid);
      assert.ok(left === null || left.state === 'Z', `process ${pid} of the killed daemon still runs`);
    }
    assert.equal(await readProcessStat(report.spawnerPid).then((left) => left?.state ?? 'Z'), 'Z');
    assert.equal(await isAlive(report.detached), true, 'what was started detached outlives both');
    assert.equal((await readFile(lockPath, 'utf8')).trim(), `${spawner.pid}`);
  });

  it('C15: a spawner of an earlier daemon that does not end keeps the next from starting, and is named', {
    timeout,
  }, async (t) => {
    const dir = await tempDir(t);
    const lockPath = join(dir, 'spawner.lock');
    const { daemon, report } = await startStandIn(t, lockPath);
    onCleanup(t, () => void process.kill(report.detached.pid, 'SIGKILL'));
    process.kill(report.spawnerPid, 'SIGSTOP');
    daemon.kill('SIGKILL');
    await assert.rejects(
      startSpawner({ lockPath, startTimeoutMs: 700 }),
      withReason('TimedOut', new RegExp(`process ${report.spawnerPid} .*spawner.lock`)),
    );
    process.kill(report.spawnerPid, 'SIGCONT');
    await spawnerOf(t, dir);
  });

  it('C15: when the spawner dies, all that is under way fails and is killed', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    const pids = Promise.withResolvers<number[]>();
    const run = spawner.run(
      shell('sleep 300 & echo $$ $!; wait', {
        onStdout: (chunk) => pids.resolve(text(chunk).trim().split(' ').map(Number)),
      }),
    );
    const seen = await pids.promise;
    process.kill(spawner.pid, 'SIGKILL');
    await assert.rejects(run, withReason('HostFailed', /spawner has ended/));
    await spawner.ended;
    await Promise.all(seen.map(endOf));
    await assert.rejects(spawner.run(request('true')), withReason('HostFailed', /spawner has ended/));
  });

  it('C15: lets a program finish that was given the time for it and has its input, and kills it after that', {
    timeout,
  }, async (t) => {
    const dir = await tempDir(t);
    const spawner = await spawnerOf(t, dir);
    const marks = async (): Promise<string[]> => (await readdir(dir)).filter((name) => name.startsWith('mark'));
    const script = (name: string): string => `touch mark-${name}-begun; sleep 0.5; touch mark-${name}-done; sleep 300`;
    const runs = [
      spawner.run(shell(script('killed'), { cwd: dir })),
      spawner.run(shell(script('finished'), { cwd: dir, finishMs: 1_500 })),
    ];
    const waiting = spawner.run(request('cat', [], { input: new Promise(() => undefined), finishMs: 10_000 }));
    for (const run of [...runs, waiting]) run.catch(() => undefined);
    while ((await marks()).length < 2) await sleep(10);
    const closingMs = performance.now();
    await spawner.close();
    const tookMs = performance.now() - closingMs;
    assert.deepEqual((await marks()).toSorted(), ['mark-finished-begun', 'mark-finished-done', 'mark-killed-begun']);
    assert.ok(tookMs >= 1_400 && tookMs < 6_000, `${tookMs} ms`);
  });

  it('is left alone by the signals of a terminal and of a supervisor', { timeout }, async (t) => {
    const spawner = await spawnerOf(t, await tempDir(t));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(spawner.pid, signal);
    assert.equal((await spawner.run(request('true'))).exitCode, 0);
    const started = await readProcessStat(spawner.pid);
    assert.equal(started?.startTicks, spawner.startTicks);
    assert.equal(started.processGroup, spawner.pid);
  });

  it('starts a program that outlives it, its output in a file', { timeout }, async (t) => {
    const dir = await tempDir(t);
    const spawner = await spawnerOf(t, dir);
    const outputPath = join(dir, 'output');
    const program = {
      command: 'sh',
      args: ['-c', 'echo out; echo err >&2; exec sleep 300'],
      env: { PATH: '/bin' },
      cwd: dir,
      outputPath,
    };
    const detached = await spawner.startDetached(program);
    onCleanup(t, () => void process.kill(detached.pid, 'SIGKILL'));
    await spawner.close();
    assert.equal(await isAlive(detached), true);
    while ((await readFile(outputPath, 'utf8')) !== 'out\nerr\n') await sleep(10);
    const again = await spawnerOf(t, dir);
    await assert.rejects(again.startDetached({ ...program, command: '/no/such' }), withReason('HostLacks', /ENOENT/));
    await assert.rejects(again.startDetached({ ...program, outputPath: '/no/such/file' }), FailureError);
  });
});
