/**
 * How soon commands answer that read a large journal, and what they cost; then the latencies of a daemon whose journal that
 * is, alone and while such commands run on it without a pause. Prints every figure beside its goal.
 *
 *   node bench/readers.ts --help
 */
import { copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { waitServing } from '../scripts/lib/serving.ts';
import { connectReader } from '../src/journal/connect.ts';
import { openReader } from '../src/journal/open.ts';
import { journalFiles } from '../src/journal/files.ts';
import { snapshotSeqs } from '../src/journal/surroundings-check.ts';
import { startDaemon, type Daemon } from '../test/support/daemon.ts';
import { median, percentile } from './compare/statistics.ts';
import { journalIn, namedIn, optionsOrEnd, positive } from './options.ts';
import { type Known, readerGoals } from './readers/commands.ts';
import { measureFsck } from './readers/fsck.ts';
import { load, runScribe, timeToListen } from './readers/run.ts';

const usage = `node bench/readers.ts JOURNAL [--rounds N] [--calls N] [--only PART,...]

  --rounds N  how often each command runs; what is told is the median (3)
  --calls N   calls of each method that the daemon answers, alone and beside readers (1000)
  --only LIST some of commands, daemon and fsck, which is not run otherwise: writes the journal as a transparency log and
              has Tessera's fsck judge it, which takes Go, and its modules once

JOURNAL is what node scripts/make-journal.ts JOURNAL made. The daemon works on a copy of it, in a network namespace of
its own, as root. Run npm run build first, as whoever installs scribe does.`;

const parts = ['commands', 'daemon', 'fsck'] as const;

interface Options {
  readonly journal: string;
  readonly wanted: readonly (typeof parts)[number][];
  readonly rounds: number;
  readonly calls: number;
}

/** Throws one sentence for anything that it cannot take. */
const readOptions = (): Options => {
  const { values, positionals } = parseArgs({
    options: {
      help: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '3' },
      calls: { type: 'string', default: '1000' },
      only: { type: 'string', default: 'commands,daemon' },
    },
    allowPositionals: true,
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  return {
    journal: journalIn(positionals),
    wanted: namedIn('only', values.only, parts),
    rounds: positive('rounds', values.rounds, Number.isInteger),
    calls: positive('calls', values.calls, Number.isInteger),
  };
};

const { journal, wanted, rounds, calls } = optionsOrEnd('bench/readers.ts', readOptions);

const farthestSeqOf = (headSeq: number): number => {
  const db = connectReader(journal);
  try {
    const seqs = snapshotSeqs(db).toSorted((a, b) => a - b);
    const before = (index: number): number => seqs[index - 1] ?? 0;
    const ends = [...seqs, headSeq + 1].map((seq, index) => ({ seq: seq - 1, records: seq - 1 - before(index) }));
    return ends.reduce((a, b) => (b.records > a.records ? b : a)).seq;
  } finally {
    db.close();
  }
};

const known = (): Known => {
  const reader = openReader(journal);
  try {
    const head = reader.head().seq;
    const middleSeq = Math.floor(head / 2);
    const first = (type: string) => reader.page({ types: [type] }, middleSeq, head).records[0];
    const middleMs = Number((reader.page({}, middleSeq, head).records[0]?.atNs ?? 0n) / 1_000_000n);
    const sandbox = JSON.parse(first('sandbox.requested')?.body ?? '{}') as {
      config?: { metadata?: { name?: string } };
    };
    return {
      middleSeq,
      farthestSeq: farthestSeqOf(head),
      containerId: (first('container.removed')?.stream ?? '').replace('container/', ''),
      pod: sandbox.config?.metadata?.name ?? '',
      call: first('call.received')?.seq ?? 1,
      middleTime: new Date(middleMs).toISOString(),
      middleAgo: `${Math.round((Date.now() - middleMs) / 60_000)}m`,
    };
  } finally {
    reader.close();
  }
};

const shown = (ms: number | null): string => (ms === null ? '' : String(Math.round(ms)));
const verdict = (goalMs: number | null, ms: number | null): string => {
  if (goalMs === null || ms === null) return '';
  return ms <= goalMs ? 'met' : 'MISSED';
};

const measureCommands = async (things: Known): Promise<void> => {
  console.log(`load ${load()}\n`);
  console.log('| command | lines | first, ms | goal | | end, ms | goal | | processor time, ms |');
  console.log('|---|--:|--:|--:|---|--:|--:|---|--:|');
  const verdicts: string[] = [];
  for (const { words, firstMs, endMs } of readerGoals(things)) {
    const ran = [];
    for (let round = 0; round < rounds; round += 1)
      ran.push(await runScribe([...words.slice(0, 1), '--root', dirname(journal), ...words.slice(1)]));
    const firsts = ran.flatMap((one) => one.firstMs ?? []);
    const first = firsts.length === 0 ? null : median(firsts);
    const end = median(ran.map((one) => one.endMs));
    const cpu = median(ran.map((one) => one.cpuMs));
    const cells = [
      words.join(' '),
      ran[0]?.lines ?? 0,
      shown(first),
      shown(firstMs),
      verdict(firstMs, first),
      shown(end),
      shown(endMs),
      verdict(endMs, end),
      shown(cpu),
    ];
    verdicts.push(verdict(firstMs, first), verdict(endMs, end));
    console.log(`| ${cells.join(' | ')} |`);
  }
  const socket = join(tmpdir(), `scribe-then-${process.pid}.sock`);
  const took = [];
  for (let round = 0; round < rounds; round += 1)
    took.push(await timeToListen(['at', '--root', dirname(journal), String(things.farthestSeq), '--listen', socket]));
  const listening = median(took);
  console.log(
    `| at ${things.farthestSeq} --listen SOCKET | | ${shown(listening)} | 1000 | ${verdict(1000, listening)} | | | | |`,
  );
  verdicts.push(verdict(1000, listening));
  const count = (wanted: string): number => verdicts.filter((one) => one === wanted).length;
  console.log(`\nGoals: ${count('met')} met, ${count('MISSED')} missed; load ${load()}.`);
};

type Latencies = Readonly<Record<string, readonly number[]>>;

/** One caller; each call after the one before. The last is recorded, and answered when it is on the disk. */
const measureCalls = async ({ cri }: Daemon): Promise<Latencies> => {
  const { containers } = await cri.runtime.listContainers();
  const containerId = containers[0]?.id;
  const measured: Readonly<Record<string, () => Promise<unknown>>> = {
    ListContainers: () => cri.runtime.listContainers(),
    ...(containerId === undefined ? {} : { ContainerStatus: () => cri.runtime.containerStatus({ containerId }) }),
    UpdateRuntimeConfig: () =>
      cri.runtime.updateRuntimeConfig({ runtimeConfig: { networkConfig: { podCidr: '10.213.0.0/16' } } }),
  };
  const took: Record<string, number[]> = {};
  for (let call = 0; call < calls; call += 1) {
    for (const [method, ask] of Object.entries(measured)) {
      const startedMs = performance.now();
      await ask();
      (took[method] ??= []).push(performance.now() - startedMs);
    }
  }
  return took;
};

/** Two at a time, over and over: what a node's people could ask at most. */
const readMeanwhile = async (root: string, things: Known, signal: AbortSignal): Promise<number> => {
  const lists = [
    [['verify'], ['why', things.containerId], ['history', '--failed']],
    [
      ['history', '--namespace', 'kube-system'],
      ['at', String(things.middleSeq), 'get', 'pods'],
      ['history', '--exec'],
    ],
  ];
  let ended = 0;
  const isOver = (): boolean => signal.aborted;
  const one = async (list: readonly (readonly string[])[]): Promise<void> => {
    for (let next = 0; !isOver(); next += 1) {
      const [command = '', ...rest] = list[next % list.length] ?? [];
      await runScribe([command, '--root', root, ...rest], signal).catch(() => null);
      if (!isOver()) ended += 1;
    }
  };
  await Promise.all(lists.map(one));
  return ended;
};

const measureDaemon = async (things: Known): Promise<void> => {
  const undos: (() => Promise<void>)[] = [];
  try {
    const daemon = await startDaemon(
      { after: (undo) => undos.push(undo) },
      {
        stopped: true,
        prepare: async ({ root }) => {
          const [from, to] = [journalFiles(journal), journalFiles(join(root, 'journal.db'))];
          await copyFile(journal, join(root, 'journal.db'));
          for (const file of ['key', 'head', 'note'] as const) await copyFile(from[file], to[file]);
        },
      },
    );
    await daemon.launch();
    const ended = daemon.ended().then((how) => new Error(`the daemon ended (${how}): ${daemon.log()}`));
    // None of the journal's containers is here: the daemon finds all of them dead, and clears up after them.
    await waitServing(daemon.cri, ended, 120_000);
    console.log(`\nA daemon with that journal, one caller, ${calls} calls of each method; load ${load()}\n`);
    console.log('| method | | p50, ms | p99, ms |\n|---|---|--:|--:|');
    const show = (when: string, latencies: Latencies): void => {
      for (const [method, took] of Object.entries(latencies))
        console.log(
          `| ${method} | ${when} | ${percentile(took, 50).toFixed(2)} | ${percentile(took, 99).toFixed(2)} |`,
        );
    };
    for (const round of ['first', 'again']) {
      show(`alone, ${round}`, await measureCalls(daemon));
      const stop = new AbortController();
      const reading = readMeanwhile(daemon.dirs.root, things, stop.signal);
      show(`beside readers, ${round}`, await measureCalls(daemon));
      stop.abort();
      console.log(`| readers that ended meanwhile | ${round} | ${await reading} | |`);
    }
  } finally {
    for (const undo of undos.toReversed()) await undo();
  }
};

const things = known();
if (wanted.includes('commands')) await measureCommands(things);
if (wanted.includes('daemon')) await measureDaemon(things);
if (wanted.includes('fsck')) await measureFsck(journal);
process.exit(0);
