/** `scribe journal info`: what is in the journal, what it takes, and when that will be too much. */
import { statfs } from 'node:fs/promises';
import { loadConfig } from '../../config/load.ts';
import type { Config } from '../../config/config.ts';
import { isClosedStream } from '../../domain/turn/closed-streams.ts';
import { overWith, type PluginLives, TOLD_OF_PLUGINS } from '../../domain/turn/plugin-lives.ts';
import type { NodeState } from '../../domain/model/state.ts';
import { nodeFold } from '../../engine/node-fold.ts';
import { foldState } from '../../journal/fold.ts';
import { openReader } from '../../journal/open.ts';
import { type JournalSizes, measureJournal } from '../../journal/sizes.ts';
import { command, type Values } from '../command.ts';
import { bytes, counted, duration, grouped, jsonLine, type ShowTime } from '../format.ts';
import { recordOf } from '../history/names.ts';
import { type Io, write } from '../io.ts';
import { timesIn } from '../local-zone.ts';
import { configOption, jsonOption, readableJournal, rootOf, rootOption } from '../places.ts';
import { createProgress } from '../progress.ts';
import { createTable } from '../table.ts';
import { type Witnessed, witnessedOf } from './witnesses.ts';
import { type Counted, createUsageCounter, daysUntil, GROWTH_DAYS, growthPerDay, type RecordClass } from './usage.ts';

const DAY_MS = 86_400_000;
const NS_PER_MS = 1_000_000n;
const PROGRESS_EVERY_RECORDS = 10_000;

const options = {
  root: rootOption,
  config: configOption,
  utc: { about: 'Shows times in UTC.' },
  json: jsonOption,
} as const;

type Retention = Config['journal']['retention'];

/** A row of the table of classes. */
interface ClassRow {
  readonly class: RecordClass;
  readonly records: number;
  readonly sizeBytes: number;
  readonly oldestAtMs: number | null;
  /** null: for as long as what it is about. */
  readonly keptMs: number | null;
}

interface TypeRow {
  readonly type: string;
  readonly records: number;
  readonly sizeBytes: number;
}

interface Info {
  readonly path: string;
  readonly sizes: JournalSizes;
  readonly oldestAtMs: number | null;
  readonly newestAtMs: number | null;
  readonly classes: readonly ClassRow[];
  readonly types: readonly TypeRow[];
  readonly growthBytesPerDay: number | null;
  readonly sizeBytesMax: number;
  readonly daysUntilSizeMax: number | null;
  readonly diskFreeBytes: number;
  /** Until calls that make something are refused for want of room. */
  readonly daysUntilDiskFull: number | null;
  readonly witnesses: readonly Witnessed[];
}

const keptMsOf = (one: ClassRow['class'], retention: Retention): number | null => {
  switch (one) {
    case 'reads':
      return retention.readsMs;
    case 'commands':
      return retention.execProbesMs;
    case 'sessions':
      return retention.execSessionsMs;
    case 'refused':
      return retention.refusedCallsMs;
    case 'removed':
      return retention.removedPodsMs;
    case 'present':
      return null;
  }
};

const isPresentIn = (state: NodeState): ((stream: string) => boolean) => {
  const known = new Map<string, boolean>();
  return (stream) => {
    const answer = known.get(stream) ?? !isClosedStream(state, stream);
    known.set(stream, answer);
    return answer;
  };
};

/** What a record takes beside its body: its columns, its places in indexes, its share of the names. */
const besideBody = ({ recordBytes }: JournalSizes, { all }: Counted): number =>
  all.records === 0 ? 0 : Math.max(0, recordBytes - all.bodyBytes) / all.records;

/** When the journal ends: a copy is not told by today's clock. */
const newestMsOf = (path: string, headSeq: number): number => {
  const reader = openReader(path);
  try {
    const newest = recordOf(reader, headSeq);
    return newest === undefined ? Date.now() : Number(newest.atNs / NS_PER_MS);
  } finally {
    reader.close();
  }
};

const infoOf = async (
  path: string,
  { retention, diskReserveBytes, witnesses }: Config['journal'],
  onRecords: (count: number) => void,
): Promise<Info> => {
  const { state, seq } = foldState(path, nodeFold);
  const hasOwnTime = (one: RecordClass): boolean => keptMsOf(one, retention) !== null;
  const recentFromMs = newestMsOf(path, seq) - GROWTH_DAYS * DAY_MS;
  const lives: PluginLives = new Map();
  const counter = createUsageCounter(isPresentIn(state), recentFromMs, hasOwnTime, (record) =>
    overWith(lives, { ...record, body: record.bodyStart }),
  );
  let seen = 0;
  const sizes = measureJournal(path, TOLD_OF_PLUGINS, (record) => {
    counter.add(record);
    seen += 1;
    if (seen % PROGRESS_EVERY_RECORDS === 0) onRecords(seen);
  });
  const count = counter.counted();
  const beside = besideBody(sizes, count);
  const sizeOf = (one: { readonly records: number; readonly bodyBytes: number }): number =>
    Math.round(one.bodyBytes + one.records * beside);
  // Most calls that only read are rows and no records.
  const rowsOf = (one: RecordClass) =>
    one === 'reads' ? { count: sizes.readCalls, sizeBytes: sizes.readCallBytes } : { count: 0, sizeBytes: 0 };
  const perDay = growthPerDay(count, beside);
  const { bavail, bsize } = await statfs(path);
  return {
    path,
    sizes,
    oldestAtMs: count.all.oldestAtMs,
    newestAtMs: count.newestAtMs,
    classes: [...count.classes]
      .filter(([one]) => one === 'present' || hasOwnTime(one))
      .map(([one, usage]) => ({
        class: one,
        records: usage.records + rowsOf(one).count,
        sizeBytes: sizeOf(usage) + rowsOf(one).sizeBytes,
        oldestAtMs: usage.oldestAtMs,
        keptMs: keptMsOf(one, retention),
      })),
    types: [...count.types]
      .map(([type, usage]) => ({ type, records: usage.records, sizeBytes: sizeOf(usage) }))
      .sort((a, b) => b.sizeBytes - a.sizeBytes),
    growthBytesPerDay: perDay === null ? null : Math.round(perDay),
    sizeBytesMax: retention.sizeBytesMax,
    daysUntilSizeMax: daysUntil(retention.sizeBytesMax - sizes.usedBytes, perDay),
    diskFreeBytes: bavail * bsize,
    daysUntilDiskFull: daysUntil(bavail * bsize + sizes.freeBytes - diskReserveBytes, perDay),
    witnesses: await witnessedOf(path, witnesses),
  };
};

const timeOf = (atMs: number | null, showTime: ShowTime): string =>
  atMs === null ? '' : showTime(BigInt(Math.round(atMs)) * NS_PER_MS);

const inDays = (days: number | null): string => {
  if (days === null) return 'never at this pace';
  return days === 0 ? 'now' : `in ${duration(BigInt(Math.round(days * DAY_MS)) * NS_PER_MS)}`;
};

const forecastLines = (info: Info): string[] => {
  const { growthBytesPerDay: perDay, sizes, sizeBytesMax } = info;
  if (perDay === null) return ['grows by     unknown: the journal tells of too little time'];
  // What no size can keep the disk from: another limit is met before.
  const isCapped = info.daysUntilSizeMax !== null && info.daysUntilSizeMax <= (info.daysUntilDiskFull ?? Infinity);
  return [
    `grows by     ${bytes(perDay)} a day, by the records of the last ${GROWTH_DAYS} days that are kept`,
    `size_max     ${bytes(sizeBytesMax)}, ${bytes(sizes.usedBytes)} in use: reached ${inDays(info.daysUntilSizeMax)}, then the oldest goes early`,
    `disk         ${bytes(info.diskFreeBytes)} free: ${isCapped ? 'size_max is reached before it is full' : `full ${inDays(info.daysUntilDiskFull)}: make room, or lower journal.retention`}`,
  ];
};

const witnessWords = (cosigned: Witnessed['cosigned'], showTime: ShowTime): string =>
  cosigned === null
    ? 'has cosigned nothing yet'
    : `has cosigned ${counted(cosigned.seq, 'record')}, ${timeOf(cosigned.atSeconds * 1000, showTime)}`;

const linesOf = (info: Info, showTime: ShowTime): string[] => {
  const { sizes } = info;
  const pruned = sizes.prunedRecords === 0 ? '' : `, ${grouped(sizes.prunedRecords)} of them pruned`;
  const free = sizes.freeBytes === 0 ? '' : ' (the next records go there; scribe journal compact gives it back)';
  const newest = (seq: number | null): string => (seq === null ? '' : `, the newest at record ${grouped(seq)}`);
  return [
    `journal      ${info.path}`,
    `size         ${bytes(sizes.fileBytes)}, and ${bytes(sizes.walBytes)} of write-ahead log`,
    `free inside  ${bytes(sizes.freeBytes)}${free}`,
    `records      ${grouped(sizes.records)}${pruned}`,
    `oldest kept  ${timeOf(info.oldestAtMs, showTime)}`,
    `newest       ${timeOf(info.newestAtMs, showTime)}`,
    `snapshots    ${grouped(sizes.snapshots)}, ${bytes(sizes.snapshotBytes)}${newest(sizes.newestSnapshotSeq)}`,
    `checkpoints  ${grouped(sizes.checkpoints)}${newest(sizes.newestCheckpointSeq)}`,
    ...info.witnesses.map(({ name, cosigned }) => `witness      ${name}: ${witnessWords(cosigned, showTime)}`),
    ...forecastLines(info),
  ];
};

const ABOUT: Readonly<Record<ClassRow['class'], string>> = {
  reads: 'calls that only read',
  commands: 'commands (ExecSync)',
  sessions: 'exec, attach, port-forward',
  refused: 'refused calls',
  removed: 'of removed pods',
  present: 'of what is there',
};

const keptFor = (keptMs: number | null): string =>
  keptMs === null ? 'as long as it is' : duration(BigInt(keptMs) * NS_PER_MS);

const show = async (info: Info, showTime: ShowTime, io: Io): Promise<void> => {
  await write(io.stdout, `${linesOf(info, showTime).join('\n')}\n\n`);
  const titled = (titles: readonly string[]) =>
    createTable(
      io.stdout,
      titles.map((title) => ({ title, widthMax: 40 })),
    );
  const classes = titled(['CLASS', 'RECORDS', 'SIZE', 'KEPT FOR', 'OLDEST']);
  for (const row of info.classes)
    await classes.add([
      ABOUT[row.class],
      grouped(row.records),
      bytes(row.sizeBytes),
      keptFor(row.keptMs),
      timeOf(row.oldestAtMs, showTime),
    ]);
  await classes.flush();
  await write(io.stdout, '\n');
  const types = titled(['TYPE', 'RECORDS', 'SIZE']);
  for (const { type, records, sizeBytes } of info.types) await types.add([type, grouped(records), bytes(sizeBytes)]);
  await types.flush();
};

export const journalInfo = command({
  name: 'journal info',
  summary: 'what is in the journal, what it takes, and how it grows',
  description: [
    'Shows how large the journal is and how much of it is free inside, how many records it has and had, by type and by the class that journal.retention keeps them for, its snapshots and checkpoints, how fast it grows, and when, at that pace, it reaches journal.retention.size_max or the disk is full.',
    'Sizes of classes and types are reckoned: bodies, and what a record takes beside its body on average. Records about what is there are kept as long as it is. Reads the journal itself, with the daemon up or down, and changes nothing; a million records take a few seconds.',
  ],
  options,
  examples: [
    ['scribe journal info', 'Whether there is room for the next months.'],
    ['scribe journal info --json | jq .daysUntilDiskFull', 'For whoever watches disks.'],
  ],
  run: async (values: Values<typeof options>, _operands, io) => {
    const path = await readableJournal(await rootOf(values));
    const { journal } = await loadConfig({ path: values.config });
    const progress = createProgress(io.stderr);
    const info = await infoOf(path, journal, (count) =>
      progress.draw(() => [`looking at ${counted(count, 'record')}`]),
    );
    progress.clear();
    if (values.json === true) await write(io.stdout, jsonLine(info));
    else await show(info, timesIn(values), io);
    return 0;
  },
});
