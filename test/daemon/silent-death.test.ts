/** What a start finds out of a daemon that ended without a word, from the journal, the kernel's log and V8's report. */
import assert from 'node:assert/strict';
import { access, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { crashReportAt } from '../../src/cli/bundle/redact.ts';
import { type CrashReport, crashReportsAmong, writeCrashReport } from '../../src/daemon/crash-report.ts';
import { callsUnderWay, pidLeftIn, reportSilentDeath } from '../../src/daemon/silent-death/report.ts';
import { initialState } from '../../src/domain/model/state.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { linesOfEnd } from '../../src/platform/linux/kernel-log.ts';
import { recordsOf, rootWith, scribe, startNode } from '../cli/support.ts';
import { startNs } from '../cli/story.ts';
import type { Owner } from '../support/cleanup.ts';
import { fillAtOnce, mountSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Two lives of a daemon; the first ended without a word, after its record `lastSeq`. */
let [records, lastSeq]: [readonly JournalRecord[], number] = [[], 0];

before(async () => {
  const first = await startNode({ nowNs: startNs });
  void first.ask({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  await first.advance(1000);
  lastSeq = recordsOf(first).length;
  records = recordsOf(await startNode({ contents: first.contents, nowNs: startNs + 10_000_000_000n }));
});

const PID = 4711;
const OTHERS_SECRET = 'canary-of-a-pod';
const underWay = [{ seq: 4, method: 'PullImage', effects: ['PullImage'] }];

interface Found {
  /** By name. */
  readonly reports: Readonly<Record<string, CrashReport>>;
  readonly root: string;
  readonly warned: readonly string[];
}

interface Told {
  readonly of?: readonly JournalRecord[];
  readonly kernelLog?: () => Promise<string>;
  readonly files?: Readonly<Record<string, string>>;
}

const find = async (
  owner: Owner,
  { of = records, kernelLog = async () => '', files = {} }: Told = {},
): Promise<Found> => {
  const { dir: rootDir, journalPath } = await rootWith(owner, of);
  for (const [name, text] of Object.entries(files)) await writeFile(join(rootDir, name), text);
  const warned: string[] = [];
  const log = { info: () => undefined, warn: (_: object, message: string) => void warned.push(message) };
  await reportSilentDeath({ rootDir, journalPath, traces: { lastSeq, pid: PID, underWay }, log, kernelLog });
  const names = (await readdir(rootDir)).filter((name) => name.startsWith('crash-'));
  const read = async (name: string): Promise<[string, CrashReport]> => [
    name,
    JSON.parse(await readFile(join(rootDir, name), 'utf8')) as CrashReport,
  ];
  return { reports: Object.fromEntries(await Promise.all(names.map(read))), root: rootDir, warned };
};

const onlyOf = ({ reports, warned }: Found): CrashReport =>
  Object.values(reports)[0] ?? assert.fail(`no report: ${warned.join()}`);

test('a run without an end leaves a report of its last decision, named by its last record, and replay says what is known', async (t) => {
  const found = await find(t);
  const report = onlyOf(found);
  const last = records[lastSeq - 1] ?? assert.fail();
  const name = `crash-${last.atNs / 1_000_000n}.json`;
  assert.deepEqual(Object.keys(found.reports), [name]);
  assert.deepEqual(found.warned, ['the daemon before this one: it ended without a word, as by a signal']);
  assert.deepEqual([report.records, report.isDecided, report.atNs], [[], true, String(last.atNs)]);
  assert.deepEqual(report.afterwards, {
    run: { firstSeq: 1, lastSeq },
    pid: PID,
    underWay,
    kernelLog: { lines: [] },
    v8: null,
  });
  const { stdout, exitStatus, stderr } = await scribe(['replay', join(found.root, name)]);
  assert.equal(exitStatus, 0, stderr);
  assert.match(stdout, / {2}1 call had no answer yet:\n {4}4 {2}PullImage: PullImage had not ended\nThe last decision/);
  assert.match(stdout, / {2}The kernel's log tells of no fault of it, nor of the OOM killer\.\n/);
});

test('none is left of what was stopped, said itself why it ended, was rebooted, or has one already', async (t) => {
  const started = records.findLast(({ type }) => type === 'daemon.started') ?? assert.fail();
  const withStart = (from: string, to: string): JournalRecord[] =>
    records.map((record) => (record === started ? { ...record, body: record.body.replace(from, to) } : record));
  const own = `crash-${startNs / 1_000_000n + 900n}.json`;
  const stopped = records.map((record) =>
    record.seq === lastSeq ? { ...record, type: 'daemon.stopped', body: '{"reason":"SIGTERM"}' } : record,
  );
  const cases: Readonly<Record<string, Told>> = {
    told: { of: withStart('"crash":null', '"crash":"Error: x"') },
    rebooted: { of: withStart('"rebooted":false', '"rebooted":true') },
    stopped: { of: stopped },
    own: { files: { [own]: '{}' } },
  };
  for (const [name, told] of Object.entries(cases)) {
    const { reports, warned } = await find(t, told);
    assert.deepEqual([Object.keys(reports), warned], [Object.keys(told.files ?? {}), []], name);
  }
  // One of a life before does not count, nor one of a clock that was years ahead.
  for (const name of ['crash-1.json', 'crash-4102444800000.json'])
    assert.equal(Object.keys((await find(t, { files: { [name]: '{}' } })).reports).length, 2, name);
});

const LOG = `<6>[    0.000000] Linux version 6.18
<6>[    0.000001] node[${PID}]: segfault at 0 ip 0 sp 0 error 4 in node
<4>[  900.000000] ${OTHERS_SECRET} invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0
<6>[  900.000001] [   ${PID + 1}]     0  ${PID + 1}   ${PID}      200   ${OTHERS_SECRET}
<6>[  900.000002] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task_memcg=/x,task=node,pid=${PID},uid=0
<3>[  900.000003] Out of memory: Killed process ${PID} (node) total-vm:1000kB
<6>[  901.${PID}00] eth0: link up
`;

test("of the kernel's log it keeps what names the process or tells of the OOM killer since the run began", async (t) => {
  const [oomKiller, ...own] = linesOfEnd(LOG, PID, 800_000_000_000n);
  assert.equal(oomKiller, `${OTHERS_SECRET} invoked oom-killer: gfp_mask=0xcc0, order=0, oom_score_adj=0`);
  assert.deepEqual(own, [
    `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task_memcg=/x,task=node,pid=${PID},uid=0`,
    `Out of memory: Killed process ${PID} (node) total-vm:1000kB`,
  ]);
  assert.equal(linesOfEnd(LOG, PID, 0n).length, 4);
  assert.deepEqual(linesOfEnd(`<6>traps: node[${PID}] trap invalid opcode\n`, PID, 10n ** 18n), [
    `traps: node[${PID}] trap invalid opcode`,
  ]);

  // The rig's clock began long before.
  const killed = onlyOf(await find(t, { kernelLog: async () => LOG.replaceAll(/\[ *\d+\.\d+\] /g, '') }));
  assert.equal(killed.what, 'the kernel killed it, for memory had run out');
  // The OOM killer names programs of pods: those are in no bundle at the default level.
  assert.doesNotMatch(JSON.stringify(crashReportAt('metadata', killed)), new RegExp(OTHERS_SECRET));
  assert.match(JSON.stringify(crashReportAt('metadata', killed)), new RegExp(`Killed process ${PID} `));
  assert.match(JSON.stringify(crashReportAt('request-response', killed)), new RegExp(OTHERS_SECRET));
  const unread = onlyOf(await find(t, { kernelLog: () => Promise.reject(new Error('EPERM: not permitted')) }));
  assert.deepEqual(unread.afterwards?.kernelLog, { unread: 'EPERM: not permitted' });
});

test("V8's report is taken in where it is of that run, frames and heap alone, and is gone afterwards", async (t) => {
  const of = (atMs: bigint): string =>
    JSON.stringify({
      header: { event: 'Allocation failed', dumpEventTimeStamp: String(atMs), commandLine: [OTHERS_SECRET] },
      javascriptStack: { message: OTHERS_SECRET, stack: ['at fill (file:///x.js:1:2)', `Error: ${OTHERS_SECRET}`] },
      javascriptHeap: { usedMemory: 12, memoryLimit: 34 },
      environmentVariables: { OTHERS_SECRET },
    });
  const ended = await find(t, { files: { 'v8-fatal.json': of(startNs / 1_000_000n + 1n) } });
  const report = onlyOf(ended);
  assert.equal(report.what, 'V8 ended it: Allocation failed');
  assert.equal(report.stack, '    at fill (file:///x.js:1:2)');
  assert.deepEqual(report.afterwards?.v8?.heap, { usedBytes: 12, limitBytes: 34 });
  assert.doesNotMatch(JSON.stringify(report), new RegExp(OTHERS_SECRET));
  await assert.rejects(access(join(ended.root, 'v8-fatal.json')));
  for (const text of [of(1n), '{"header":', 'null'])
    assert.equal(onlyOf(await find(t, { files: { 'v8-fatal.json': text } })).afterwards?.v8, null, text);
});

test('a journal that cannot be read is a line of the log, and no more', async (t) => {
  const rootDir = await tempDir(t);
  const warned: string[] = [];
  const log = { info: () => undefined, warn: (_: object, message: string) => void warned.push(message) };
  const traces = { lastSeq: 5, pid: null, underWay: [] };
  await reportSilentDeath({ rootDir, journalPath: join(rootDir, 'journal.db'), traces, log });
  assert.deepEqual(warned, ['how the daemon before this one ended could not be found out']);
});

test('on a full disk nothing is left that would be taken for a report, and with room the next start writes one', async (t) => {
  const { journalPath } = await rootWith(t, records);
  const rootDir = await tempDir(t);
  await mountSmallDisk(t, rootDir, 1);
  const filling = await fillAtOnce(rootDir);
  const log = { info: () => undefined, warn: () => undefined };
  const reports = async (): Promise<number> => crashReportsAmong(await readdir(rootDir)).length;
  const report = (): Promise<void> =>
    reportSilentDeath({
      rootDir,
      journalPath,
      traces: { lastSeq, pid: PID, underWay },
      log,
      kernelLog: async () => '',
    });
  await report();
  assert.equal(await reports(), 0);
  writeCrashReport({ rootDir, version: '1' }, 'staged', new Error('staged'));
  assert.equal(await reports(), 0);
  await rm(filling);
  await report();
  assert.equal(await reports(), 1);
});

test('the pid and the calls of the daemon before, noted before a start changes them', async (t) => {
  const dir = await tempDir(t);
  const path = join(dir, 'scribe.pid');
  assert.equal(pidLeftIn(path), null);
  await writeFile(path, '4711\n');
  assert.equal(pidLeftIn(path), 4711);
  await writeFile(path, 'no pid');
  assert.equal(pidLeftIn(path), null);
  assert.deepEqual(callsUnderWay(initialState()), []);
  const node = await startNode({ perform: { PullImage: () => new Promise<never>(() => undefined) } });
  void node.ask({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  await node.advance(1000);
  const seq = recordsOf(node).find(({ type }) => type === 'call.received')?.seq;
  assert.deepEqual(callsUnderWay(node.view.state), [{ seq, method: 'PullImage', effects: ['PullImage'] }]);
});
