/**
 * Measures the journal alone: durable appends from many callers at once, lazy appends, folding and verifying a large
 * journal, the event loop's delay meanwhile, and what an ExecSync and a List cost on disk. Prints one line per figure
 * beside its bound; ends with status 1 when a bound is missed. Uses its own temporary directory and removes it.
 *
 *   node bench/journal.ts --help
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { foldRecords } from '../src/journal/fold.ts';
import { openJournal } from '../src/journal/open.ts';
import type { SqliteJournal } from '../src/journal/sqlite-journal.ts';
import type { JournalRecord } from '../src/journal/types.ts';
import { verifyJournal } from '../src/journal/verify.ts';
import { optionsOrEnd, positive } from './options.ts';

const usage = `node bench/journal.ts [--records N] [--seconds S] [--callers N] [--dir DIR] [--json]

  --records N  records of the journal that is folded and verified; what is appended before may be more (1000000)
  --seconds S  how long each rate is measured (5)
  --callers N  who append at once, each waiting for its own (64)
  --dir DIR    where the journal is made and removed: the disk that is to be measured (the directory of temporary files)
  --json       the figures as JSON

Ends with status 1 when a bound is missed.`;

interface Options {
  readonly counts: { readonly records: number; readonly seconds: number; readonly callers: number };
  readonly dir: string;
  readonly isJson: boolean;
}

/** Throws one sentence for anything that it cannot take. */
const readOptions = (): Options => {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      records: { type: 'string', default: '1000000' },
      seconds: { type: 'string', default: '5' },
      callers: { type: 'string', default: '64' },
      dir: { type: 'string', default: tmpdir() },
      json: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const counts = {
    records: positive('records', values.records, Number.isInteger),
    seconds: positive('seconds', values.seconds, Number.isFinite),
    callers: positive('callers', values.callers, Number.isInteger),
  };
  return { counts, dir: values.dir, isJson: values.json };
};

const { counts, dir: parentDir, isJson } = optionsOrEnd('bench/journal.ts', readOptions);

interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** What it must be at least, or at most. */
  readonly bound: readonly ['least' | 'most', number] | null;
}

const boot = 'b5a7c1de-52b1-4c4e-9d6e-2f0f7c6a9b10';
const hexOf = (n: number, length: number): string => n.toString(16).padStart(8, '0').repeat(8).slice(0, length);

/** The four records of an ExecSync, with bodies as large as real ones. */
const execSync = (seq: number, n: number): JournalRecord[] => {
  const container = `container/${hexOf(n % 200, 64)}`;
  const call = `call/${hexOf(n, 8)}-52b1-4c4e-9d6e-2f0f7c6a9b10`;
  const atNs = 1_760_000_000_000_000_000n + BigInt(seq) * 1_000_000n;
  const common = { atNs, monoNs: BigInt(seq) * 1_000_000n, boot, v: 1, call: seq };
  const request = {
    request: { method: 'ExecSync', newId: hexOf(n, 64), containerId: hexOf(n % 200, 64), cmd: ['cat', '/tmp/healthy'] },
    caller: { pid: 1234, uid: 0, executable: '/usr/bin/kubelet', startTicks: '123456' },
    deadlineNs: '1760000000000000000',
  };
  const intent = {
    effects: [{ kind: 'RunExec', execId: hexOf(n, 32), args: ['cat', '/tmp/healthy'], timeoutMs: 10_000 }],
  };
  const ended = {
    effect: `${seq + 1}.0`,
    kind: 'RunExec',
    result: { exitStatus: 0, timedOut: false, stdoutBytes: 3, stderrBytes: 0 },
  };
  const done = {
    method: 'ExecSync',
    code: 0,
    response: { exitCode: 0, stdoutBytes: 3, stderrBytes: 0 },
    durationNs: '24000000',
  };
  return [
    { ...common, seq, type: 'call.received', stream: call, cause: null, body: JSON.stringify(request) },
    { ...common, seq: seq + 1, type: 'effects.requested', stream: container, cause: seq, body: JSON.stringify(intent) },
    { ...common, seq: seq + 2, type: 'effect.ended', stream: container, cause: seq + 1, body: JSON.stringify(ended) },
    { ...common, seq: seq + 3, type: 'call.completed', stream: call, cause: seq + 2, body: JSON.stringify(done) },
  ];
};

/** One record after another, as execSync makes them. */
const recordSource = (): ((count: number) => JournalRecord[]) => {
  let seq = 1;
  let ready: JournalRecord[] = [];
  return (count) => {
    while (ready.length < count) {
      ready.push(...execSync(seq, seq));
      seq += 4;
    }
    const taken = ready.slice(0, count);
    ready = ready.slice(count);
    return taken;
  };
};

/** How long this process' main thread has run, and has waited for a CPU that others had: ms. */
const cpuTimes = (): { runMs: number; waitMs: number } => {
  const [runNs = 0, waitNs = 0] = readFileSync('/proc/self/schedstat', 'utf8').split(' ').map(Number);
  return { runMs: runNs / 1e6, waitMs: waitNs / 1e6 };
};

const watchLoop = () => {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  return (): { p999: number; max: number } => {
    delay.disable();
    // The monitor's own timer ticks every millisecond: what is above that is delay.
    return { p999: delay.percentile(99.9) / 1e6 - 1, max: delay.max / 1e6 - 1 };
  };
};

const loopFigures = (during: string, { p999, max }: { p999: number; max: number }): Figure[] => [
  { name: `event loop delay p99.9, ${during}`, value: p999, unit: 'ms', bound: ['most', 20] },
  { name: `event loop delay max, ${during}`, value: max, unit: 'ms', bound: ['most', 50] },
];

const benchAppends = async (journal: SqliteJournal, take: (count: number) => JournalRecord[]): Promise<Figure[]> => {
  const stop = watchLoop();
  const startedMs = performance.now();
  const untilMs = startedMs + counts.seconds * 1000;
  let appended = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      await journal.append(take(1));
      appended++;
    }
  };
  await Promise.all(Array.from({ length: counts.callers }, caller));
  const perSecond = (appended * 1000) / (performance.now() - startedMs);
  return [
    { name: `durable appends, ${counts.callers} callers`, value: perSecond, unit: '/s', bound: ['least', 20_000] },
    ...loopFigures('durable appends', stop()),
  ];
};

const benchSingle = async (journal: SqliteJournal, take: (count: number) => JournalRecord[]): Promise<Figure[]> => {
  const times: number[] = [];
  for (let n = 0; n < 2000; n++) {
    const startedMs = performance.now();
    await journal.append(take(1));
    times.push(performance.now() - startedMs);
  }
  times.sort((a, b) => a - b);
  return [
    { name: 'one durable append p50', value: times[1000] ?? 0, unit: 'ms', bound: null },
    { name: 'one durable append p99', value: times[1980] ?? 0, unit: 'ms', bound: null },
  ];
};

const benchLazy = async (journal: SqliteJournal): Promise<Figure[]> => {
  const perSecondWanted = 60_000;
  const stop = watchLoop();
  const bytesBefore = await journal.usedBytes();
  const startedMs = performance.now();
  let appended = 0;
  // As a server does it: a few per turn of the loop, as many as the rate asks for.
  while (performance.now() - startedMs < counts.seconds * 1000) {
    const due = Math.floor(((performance.now() - startedMs) / 1000) * perSecondWanted * 1.2);
    for (; appended < due; appended++) {
      const atNs = 1_760_000_000_000_000_000n + BigInt(appended);
      const subject = appended % 2 === 0 ? '' : hexOf(appended % 200, 64);
      const method = appended % 2 === 0 ? 'ListContainers' : 'ContainerStatus';
      journal.appendRead({ atNs, method, code: 0, durationNs: 80_000n, callerPid: 1234, callerUid: 0, subject });
    }
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
  const sealed = await journal.sealReads();
  const durationS = (performance.now() - startedMs) / 1000;
  const kept = sealed.reduce((sum, { count }) => sum + count, 0);
  const dropped = sealed.reduce((sum, segment) => sum + segment.dropped, 0);
  const bytes = (await journal.usedBytes()) - bytesBefore;
  return [
    { name: 'lazy appends', value: kept / durationS, unit: '/s', bound: ['least', perSecondWanted] },
    { name: 'lazy appends refused', value: dropped, unit: '', bound: ['most', 0] },
    { name: 'disk per read call, many at once', value: bytes / kept, unit: 'B', bound: ['most', 150] },
    ...loopFigures('lazy appends', stop()),
  ];
};

const fill = async (journal: SqliteJournal, take: (count: number) => JournalRecord[]): Promise<Figure[]> => {
  const startedMs = performance.now();
  const bytesBefore = await journal.usedBytes();
  const missing = counts.records - journal.head().seq;
  // As many were appended while rates were measured.
  if (missing <= 0) return [];
  for (let left = missing; left > 0; left -= 1000) await journal.append(take(Math.min(left, 1000)));
  const bytes = (await journal.usedBytes()) - bytesBefore;
  return [
    {
      name: 'durable appends in batches of 1,000',
      value: (missing * 1000) / (performance.now() - startedMs),
      unit: '/s',
      bound: null,
    },
    { name: 'disk per ExecSync', value: (bytes * 4) / missing, unit: 'B', bound: ['most', 1536] },
  ];
};

const benchFold = (path: string): Figure[] => {
  const startedMs = performance.now();
  let sum = 0;
  const { records } = foldRecords(path, {}, (record) => {
    const body = JSON.parse(record.body) as { code?: number };
    sum += (body.code ?? 0) + record.seq;
  });
  const seconds = (performance.now() - startedMs) / 1000;
  return [
    {
      name: `folding ${records} records`,
      value: sum === 0 ? Number.NaN : seconds,
      unit: 's',
      bound: ['most', (6 * records) / 1e6],
    },
  ];
};

const benchVerify = async (path: string): Promise<Figure[]> => {
  const stop = watchLoop();
  const startedMs = performance.now();
  const report = await verifyJournal(path, { structure: false });
  const seconds = (performance.now() - startedMs) / 1000;
  if (!report.ok) throw new Error(`The journal does not verify: ${JSON.stringify(report.findings.slice(0, 3))}`);
  const bound = (6 * report.headSeq) / 1e6;
  const figures: Figure[] = [
    { name: `verifying ${report.headSeq} records`, value: seconds, unit: 's', bound: ['most', bound] },
    ...loopFigures('verifying', stop()),
  ];
  const againMs = performance.now();
  await verifyJournal(path);
  return [
    ...figures,
    { name: "verifying with SQLite's own check", value: (performance.now() - againMs) / 1000, unit: 's', bound: null },
  ];
};

const holds = ({ value, bound }: Figure): boolean =>
  bound === null || (bound[0] === 'least' ? value >= bound[1] : value <= bound[1]);

const print = (figures: readonly Figure[]): void => {
  for (const figure of figures) {
    const { name, value, unit, bound } = figure;
    const text = value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
    const limit =
      bound === null ? '' : `at ${bound[0]} ${bound[1].toLocaleString('en')}  ${holds(figure) ? 'ok' : 'MISSED'}`;
    console.log(`${name.padEnd(48)} ${`${text} ${unit}`.padStart(14)}   ${limit}`);
  }
};

const dir = await mkdtemp(join(parentDir, 'scribe-bench-'));
const path = join(dir, 'journal.db');
const all: Figure[] = [];
const show = (figures: readonly Figure[]): void => {
  all.push(...figures);
  if (!isJson) print(figures);
};
try {
  const { journal } = openJournal({ path });
  const take = recordSource();
  await journal.append(take(1));
  show(await benchSingle(journal, take));
  show(await benchAppends(journal, take));
  show(await benchLazy(journal));
  show(await fill(journal, take));
  await journal.close();
  show(benchFold(path));
  show(await benchVerify(path));
  if (isJson) console.log(JSON.stringify(all));
  const { runMs, waitMs } = cpuTimes();
  if (waitMs > runMs / 4 && !isJson) {
    console.log(
      `The main thread ran ${Math.round(runMs)} ms and waited ${Math.round(waitMs)} ms for a CPU: the machine is busy.`,
    );
  }
  process.exitCode = all.every(holds) ? 0 : 1;
} finally {
  await rm(dir, { recursive: true, force: true });
}
