/**
 * Daemons that end without a word, for real: by a signal, and for want of memory, by the kernel and by V8. The next start finds it out once it
 * serves, writes the report, and replay, doctor and the log say what is known. What ended in order, or said itself why it ended,
 * leaves none.
 */
import assert from 'node:assert/strict';
import { access, mkdir, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CrashReport } from '../../src/daemon/crash-report.ts';
import { cgroupDirectory, isUnified } from '../support/cgroup-limits.ts';
import { onCleanup } from '../support/cleanup.ts';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { headOf, recordsOf } from '../support/journal.ts';
import { searcherFor } from '../support/canaries.ts';

const patienceMs = 10_000;

const reportsOf = async ({ dirs }: Daemon): Promise<readonly string[]> =>
  (await readdir(dirs.root)).filter((name) => name.startsWith('crash-')).toSorted();

const whenLogged = async (daemon: Daemon, words: string): Promise<void> => {
  const untilMs = performance.now() + patienceMs;
  while (!daemon.log().includes(words) && performance.now() < untilMs) await sleep(10);
  assert.ok(daemon.log().includes(words), daemon.log());
};

const configure = ({ cri }: Daemon, n: number): Promise<unknown> =>
  cri.runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr: `10.${n}.0.0/24` } } });

const newestReport = async (daemon: Daemon): Promise<{ path: string; report: CrashReport }> => {
  const path = join(daemon.dirs.root, (await reportsOf(daemon)).at(-1) ?? assert.fail('there is no report'));
  return { path, report: JSON.parse(await readFile(path, 'utf8')) as CrashReport };
};

test('a daemon that a signal ended: the next start leaves a report that replay takes, for this end alone', async (t) => {
  const daemon = await startDaemon(t);
  await configure(daemon, 1);
  const [pid, lastSeq] = [daemon.pid(), headOf(daemon)];
  process.kill(pid, 'SIGSEGV');
  assert.equal(await daemon.ended(), 'SIGSEGV');
  assert.deepEqual(await reportsOf(daemon), []);
  await daemon.start();
  await whenLogged(daemon, 'the daemon before this one: it ended without a word, as by a signal');
  const { path, report } = await newestReport(daemon);
  const last = (await recordsOf(daemon)).find(({ seq }) => seq === lastSeq);
  assert.equal(report.atNs, String(last?.atNs));
  assert.ok(report.isDecided && report.input !== null && report.input.seq <= lastSeq);
  const { run, pid: pidThen, underWay, v8 } = report.afterwards ?? assert.fail('nothing was found out');
  assert.deepEqual(
    { run, pidThen, underWay, v8 },
    { run: { firstSeq: 1, lastSeq }, pidThen: pid, underWay: [], v8: null },
  );
  assert.match(report.version, /^\d+\./);

  const replayed = await daemon.scribe('replay', path);
  assert.equal(replayed.exitCode, 0, replayed.stderr);
  assert.match(replayed.stdout, new RegExp(`It ran as process ${pid} from record 1 to record ${lastSeq};`));
  assert.match(replayed.stdout, new RegExp(`The last decision was on record ${report.input.seq}:\n`));
  const doctor = await daemon.scribe('doctor', '--root', daemon.dirs.root, '--socket', daemon.socket, '--json');
  assert.match(doctor.stdout, /"check":"crashes","status":"warning".*1 report of crashes.*as by a signal/);

  // In order, and by SIGKILL: only the latter is a second one.
  await daemon.stop();
  await daemon.start();
  await configure(daemon, 2);
  assert.deepEqual((await reportsOf(daemon)).length, 1);
  assert.doesNotMatch(daemon.log(), /the daemon before this one/);
  await daemon.kill();
  await daemon.start();
  await whenLogged(daemon, 'the daemon before this one: ');
  assert.deepEqual((await reportsOf(daemon)).length, 2);
});

/** A plugin that never registers, for which a start waits five seconds when it has been recorded. */
const plantSlowPlugin = async ({ dirs }: Daemon): Promise<string> => {
  const plugin = join(dirname(dirs.root), 'nri/plugins/10-slow');
  await mkdir(dirname(plugin), { recursive: true });
  await writeFile(plugin, '#!/bin/sh\nexec sleep 30\n', { mode: 0o755 });
  return plugin;
};

const whenStartIsRecorded = async (daemon: Daemon, starts: number): Promise<void> => {
  const untilMs = performance.now() + patienceMs;
  const count = async (): Promise<number> =>
    (await recordsOf(daemon)).filter(({ type }) => type === 'daemon.started').length;
  while ((await count()) < starts && performance.now() < untilMs) await sleep(20);
  assert.doesNotMatch(daemon.log(), /"serving"/);
};

test('a daemon that is told to end while it starts ends in order, and one that is told to reload starts', async (t) => {
  const daemon = await startDaemon(t);
  await daemon.stop();
  const plugin = await plantSlowPlugin(daemon);

  await daemon.launch();
  await whenStartIsRecorded(daemon, 2);
  assert.equal(await daemon.stop(), 0, daemon.log());
  const last = (await recordsOf(daemon)).at(-1);
  assert.deepEqual([last?.type, last?.body], ['daemon.stopped', { reason: 'SIGTERM' }]);

  await daemon.launch();
  await whenStartIsRecorded(daemon, 3);
  process.kill(daemon.pid(), 'SIGHUP');
  await whenLogged(daemon, '"serving"');
  await whenLogged(daemon, 'configuration read again; nothing has changed');
  await daemon.stop();

  await rm(plugin);
  await daemon.start();
  await daemon.stop();
  assert.deepEqual(await reportsOf(daemon), [], daemon.log());
});

/** Fills the memory on demand; of Node's options, which have no spaces. */
const greedy =
  "--import=data:text/javascript,process.on('SIGUSR2',()=>{for(let%20kept=[];;)kept.push(Array.from({length:1000},(_,n)=>({n})))})";

/** Gives a process a control group of its own, of which the kernel gives out so much memory more. */
const limitMemory = async (t: TestContext, pid: number, bytes: number): Promise<void> => {
  const dir = cgroupDirectory(`scribe-test-memory-${pid}`, 'memory');
  await mkdir(dir);
  onCleanup(t, () => rmdir(dir));
  await writeFile(join(dir, isUnified ? 'memory.max' : 'memory.limit_in_bytes'), String(bytes));
  await writeFile(join(dir, 'cgroup.procs'), String(pid));
};

test('a daemon that the kernel killed for want of memory: its report has the words of the kernel', async (t) => {
  const daemon = await startDaemon(t, { env: { NODE_OPTIONS: greedy } });
  const pid = daemon.pid();
  await limitMemory(t, pid, 32 * 1024 * 1024);
  process.kill(pid, 'SIGUSR2');
  const how = await Promise.race([daemon.ended(), sleep(patienceMs, 'still there', { ref: false })]);
  assert.equal(how, 'SIGKILL', daemon.log());
  await daemon.start();
  await whenLogged(daemon, 'the daemon before this one: the kernel killed it, for memory had run out');
  const { report } = await newestReport(daemon);
  assert.match(JSON.stringify(report.afterwards?.kernelLog), new RegExp(`Killed process ${pid} `));
});

test('a daemon that V8 ended for want of memory: its report has V8 words and heap, and nothing of its environment', async (t) => {
  const canary = `canary-${'5b1f0e'.repeat(3)}`;
  const daemon = await startDaemon(t, { env: { NODE_OPTIONS: `--max-old-space-size=48 ${greedy}`, SECRET: canary } });
  await configure(daemon, 1);
  process.kill(daemon.pid(), 'SIGUSR2');
  const how = await Promise.race([daemon.ended(), sleep(patienceMs, 'still there', { ref: false })]);
  assert.equal(how, 'SIGABRT', daemon.log());
  const search = searcherFor([{ name: 'environment', secret: canary }]);
  const left = await readFile(join(daemon.dirs.root, 'v8-fatal.json'));
  assert.deepEqual(search(left), []);
  await daemon.start();
  await whenLogged(
    daemon,
    'the daemon before this one: V8 ended it: Allocation failed - JavaScript heap out of memory',
  );
  const { path, report } = await newestReport(daemon);
  const { usedBytes, limitBytes } = report.afterwards?.v8?.heap ?? assert.fail('there is nothing of V8');
  assert.ok(usedBytes > 20e6 && limitBytes >= usedBytes, `${usedBytes} of ${limitBytes}`);
  assert.deepEqual(search(await readFile(path)), []);
  assert.doesNotMatch(await readFile(path, 'utf8'), /commandLine|sharedObjects|environmentVariables/);
  await assert.rejects(access(join(daemon.dirs.root, 'v8-fatal.json')));
  const { stdout } = await daemon.scribe('replay', path);
  assert.match(stdout, /: V8 ended it: Allocation failed.*\n[^]*V8: [\d.]+ MiB of the heap were in use, of at most /);
});
