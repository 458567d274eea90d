/** `scribe report`: how often what was done, by whom and how it ended, counted from the journal, with its daemon up or down. */
import { openReader } from '../journal/open.ts';
import { openQueries, type Queries } from '../journal/queries.ts';
import { readAhead } from '../journal/read-ahead.ts';
import type { JournalReader } from '../journal/reader.ts';
import { nearest } from '../config/nearest.ts';
import { command, failure, misuse } from './command.ts';
import { unlessDamaged, WHY_NO_FURTHER } from './damage.ts';
import { counted, grouped, jsonLine, prunedOf, type ShowTime } from './format.ts';
import { imageNames } from './history/makings.ts';
import { type Io, write } from './io.ts';
import { timesIn } from './local-zone.ts';
import { nearlyChosen } from './near-names.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { type Collector, createSlowest, createTally, firstOfEach, type Group } from './report/count.ts';
import { isChosen, placeOf } from './report/place.ts';
import { isWord, type Report, reports, type Word, WORDS } from './report/reports.ts';
import {
  type CallRow,
  countPruned,
  readCalls,
  readRestarts,
  readThings,
  type Restart,
  type Things,
} from './report/rows.ts';
import { createTable } from './table.ts';
import { choosesAll, isMeant, refuseAmbiguous, type ThingFilter, thingFilterOf, thingOptions } from './things.ts';
import { nothingFits, parseRange, rangeOptions, type Seqs, seqsOf } from './time-argument.ts';

const CELL_WIDTH_MAX = 80;
/** Groups that one report holds; what belongs to others is counted and said. */
const GROUPS_MAX = 50_000;
const ROWS = 20;
const ROWS_OF_SUMMARY = 5;

const PERIODS = ['day', 'hour'] as const;
type Period = (typeof PERIODS)[number];

const options = {
  root: rootOption,
  config: configOption,
  pod: thingOptions.pod,
  container: thingOptions.container,
  image: thingOptions.image,
  namespace: thingOptions.namespace,
  label: thingOptions.label,
  ...rangeOptions,
  per: { value: 'PERIOD', about: 'Counts every day, or every hour, for itself: day or hour.' },
  limit: {
    value: 'NUMBER',
    short: 'n',
    about: `At most so many rows of each report, and of each period with --per. ${ROWS} unless told, ${ROWS_OF_SUMMARY} in the summary; with --json all, but of the slowest calls ${ROWS}.`,
  },
  utc: { about: 'Times, days and hours in UTC, instead of in the local zone.' },
  json: jsonOption,
} as const;

interface Asked {
  readonly words: readonly Word[];
  readonly filter: ThingFilter;
  readonly per: Period | null;
  readonly limit: number | null;
  readonly showTime: ShowTime;
}

const wordsOf = (operand: string | undefined): readonly Word[] => {
  if (operand === undefined) return WORDS;
  if (isWord(operand)) return [operand];
  const meant = nearest(operand, WORDS);
  const hint = meant === null ? `there are ${WORDS.join(', ')}.` : `did you mean ${meant}?`;
  throw misuse(`REPORT ${operand}: there is no such report; ${hint}`);
};

const perOf = (text: string | undefined): Period | null => {
  if (text === undefined) return null;
  const period = PERIODS.find((one) => one === text);
  if (period === undefined) throw misuse(`--per ${text}: there are ${PERIODS.join(' and ')}.`);
  return period;
};

const limitOf = (text: string | undefined): number | null => {
  if (text === undefined) return null;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw misuse(`--limit ${text}: that is no number from 1 to 999999.`);
  return Number(text);
};

/** The day or hour of a moment, as its time is shown: 2026-11-21, 2026-11-21 03:00+01:00. */
const periodOf = ({ per, showTime }: Asked, atNs: bigint): string | null => {
  if (per === null) return null;
  const time = showTime(atNs);
  return per === 'day' ? time.slice(0, 10) : `${time.slice(0, 13)}:00${time.slice(23)}`;
};

const addRestart = (asked: Asked, restart: Restart, collector: Collector): void => {
  const { atNs } = restart;
  const unmeasured = { failed: false, answered: true, durationMs: null, sizeBytes: null };
  collector.add({ period: periodOf(asked, atNs), key: reports.restarts.keyOf(restart), atNs, ...unmeasured });
};

const addCall = (asked: Asked, call: CallRow, things: Things, collectors: ReadonlyMap<Word, Collector>): void => {
  const place = placeOf(call, things);
  if (!isChosen(asked.filter, call, place, things)) return;
  const { atNs, durationMs, sizeBytes } = call;
  const measured = { atNs, durationMs, sizeBytes, answered: call.code !== null, period: periodOf(asked, atNs) };
  for (const [word, collector] of collectors) {
    const report: Report = reports[word];
    if (report.of === 'calls' && report.isAbout(call))
      collector.add({ ...measured, key: report.keyOf(call, place), failed: report.isFailed(call) });
  }
};

/** In SQL: the calls that are to be counted; null: all. */
const conditionOf = (words: readonly Word[]): string | null => {
  const [word] = words;
  const report: Report | null = word === undefined || words.length > 1 ? null : reports[word];
  return report?.of === 'calls' ? report.condition : null;
};

const collectorOf = (word: Word, limit: number | null): Collector => {
  const report: Report = reports[word];
  if (report.of === 'restarts') return createTally(GROUPS_MAX);
  return report.ranks === 'durations' ? createSlowest(limit ?? ROWS) : createTally(GROUPS_MAX, report.rankOf);
};

const collect = (
  queries: Queries,
  seqs: Seqs,
  asked: Asked,
  imageNames: Things['imageNames'],
  isBeforeDamage: boolean,
): ReadonlyMap<Word, Collector> => {
  const things = readThings(queries, imageNames);
  const collectors = new Map(asked.words.map((word) => [word, collectorOf(word, asked.limit)]));
  const ofRestarts = collectors.get('restarts');
  if (ofRestarts !== undefined)
    for (const restart of readRestarts(queries, things, seqs))
      if (isMeant(asked.filter, restart.container)) addRestart(asked, restart, ofRestarts);
  if (asked.words.some((word) => reports[word].of === 'calls'))
    for (const call of readCalls(queries, seqs, conditionOf(asked.words), isBeforeDamage, !choosesAll(asked.filter)))
      addCall(asked, call, things, collectors);
  return collectors;
};

interface Counted {
  readonly collectors: ReadonlyMap<Word, Collector>;
  readonly prunedRecords: number;
  readonly seqs: Seqs;
}

const countIn = (
  path: string,
  reader: JournalReader,
  asked: Asked,
  seqs: Seqs,
  readableSeq: number | null = null,
): Counted => {
  const queries = openQueries(path, readableSeq);
  try {
    const named = asked.filter.image === null ? new Map<string, never>() : imageNames(reader, seqs.toSeq);
    const collectors = collect(queries, seqs, asked, named, seqs.toSeq === readableSeq);
    return { collectors, prunedRecords: countPruned(queries, seqs), seqs };
  } finally {
    queries.close();
  }
};

/** All of it; where that is damaged, what is in front of the damage. Throws where nothing is. */
const countReadable = (path: string, reader: JournalReader, asked: Asked, seqs: Seqs): Counted => {
  const whole = unlessDamaged(() => countIn(path, reader, asked, seqs));
  if (whole !== null) return whole;
  const readableSeq = reader.readableSeq();
  const readable = { fromSeq: seqs.fromSeq, toSeq: Math.min(seqs.toSeq, readableSeq) };
  if (readable.toSeq < readable.fromSeq) throw failure(noFurtherThan(readableSeq));
  return countIn(path, reader, asked, readable, readableSeq);
};

const noFurtherThan = (seq: number): string => `Nothing behind record ${grouped(seq)} is counted: ${WHY_NO_FURTHER}`;

const jsonOf = (word: Word, { per }: Asked, group: Group): string => {
  const period = per === null ? {} : { [per]: group.period };
  return jsonLine(Object.assign({ report: word, ...period }, ...reports[word].columns.map(({ json }) => json(group))));
};

const showRows = async (word: Word, { per, showTime }: Asked, groups: readonly Group[], io: Io): Promise<void> => {
  const { columns } = reports[word];
  const titles = [...(per === null ? [] : [per.toUpperCase()]), ...columns.map(({ title }) => title)];
  const table = createTable(
    io.stdout,
    titles.map((title) => ({ title, widthMax: CELL_WIDTH_MAX })),
  );
  for (const group of groups)
    await table.add([
      ...(per === null ? [] : [group.period ?? '']),
      ...columns.map(({ text }) => text(group, showTime)),
    ]);
  await table.flush();
};

const showSummary = async (asked: Asked, collectors: ReadonlyMap<Word, Collector>, io: Io): Promise<void> => {
  let gap = '';
  for (const [word, collector] of collectors) {
    const all = collector.groups();
    const { groups, left } = firstOfEach(all, asked.limit ?? ROWS_OF_SUMMARY);
    const more =
      left === 0 ? '' : `, ${grouped(groups.length)} of ${counted(all.length, 'row')} (scribe report ${word})`;
    await write(io.stdout, `${gap}${reports[word].title}${all.length === 0 ? ': none' : more}\n`);
    if (all.length > 0) await showRows(word, asked, groups, io);
    gap = '\n';
  }
};

const showOne = async (word: Word, asked: Asked, collector: Collector, io: Io): Promise<void> => {
  const { groups, left } = firstOfEach(collector.groups(), asked.limit ?? ROWS);
  if (groups.length === 0) return;
  await showRows(word, asked, groups, io);
  if (left > 0) await write(io.stderr, `scribe: ${counted(left, 'more row')}: a larger --limit shows them.\n`);
};

const showJson = async (asked: Asked, collectors: ReadonlyMap<Word, Collector>, io: Io): Promise<void> => {
  for (const [word, collector] of collectors) {
    const { groups } = firstOfEach(collector.groups(), asked.limit ?? Number.POSITIVE_INFINITY);
    for (const group of groups) await write(io.stdout, jsonOf(word, asked, group));
  }
};

const noteMissing = async (prunedRecords: number, collectors: ReadonlyMap<Word, Collector>, io: Io): Promise<void> => {
  if (prunedRecords > 0)
    await write(io.stderr, `scribe: ${prunedOf(prunedRecords, 'what they told is not counted.')}\n`);
  for (const [word, collector] of collectors)
    if (collector.beyond() > 0)
      await write(
        io.stderr,
        `scribe: ${word}: ${grouped(collector.beyond())} are not shown, in more than ${grouped(GROUPS_MAX)} rows: narrow it by --since and --until.\n`,
      );
};

export const report = command({
  name: 'report',
  summary: 'how often what was done, by whom, and how it ended',
  description: [
    'Counts what the journal tells: execs (commands and sessions in containers: by whom, into what), pulls (of images), failures (calls that failed or were refused), restarts (of containers, with how the one before ended), slowest (the calls that took longest) and callers. Without REPORT the first rows of all of them.',
    'A command is counted by its first word; scribe history --exec shows it whole. Sessions come before ExecSync, which is mostly probes. FAILED counts commands that exited with another status than 0, too. Exec of CRI only hands out a URL: what is done with it is an ExecSession. Calls that only read are counted where an audit rule has them recorded with their request, by their own names.',
    'Reads the journal itself, with the daemon up or down, and changes nothing. What was pruned is not counted; how much that is, is said.',
    'With --json every row is an object of its own, with the name of its report and its day or hour where --per asks for it; times are in UTC, durations (meanMs, maxMs, durationMs) in milliseconds.',
  ],
  operands: { name: '[REPORT]', count: 1, countMin: 0 },
  options,
  examples: [
    ['scribe report --since 7d', 'The last week on a page.'],
    ['scribe report execs --namespace shop --per day', 'Who ran what in the pods of a namespace, day by day.'],
    ['scribe report restarts --label app=web --since yesterday', 'Why containers of an application were restarted.'],
    ['scribe report slowest --limit 3 --per hour', 'The three slowest calls of every hour.'],
  ],
  readsIn: readsInRoot,
  isPaged: () => true,
  run: async (values, [operand], io) => {
    const asked: Asked = {
      words: wordsOf(operand),
      filter: thingFilterOf(values),
      per: perOf(values.per),
      limit: limitOf(values.limit),
      showTime: timesIn(values),
    };
    const range = parseRange(values);
    const path = await readableJournal(await rootOf(values));
    // Names are looked up from all over it, for whatever range.
    void readAhead(path, 'start');
    const reader = openReader(path);
    try {
      refuseAmbiguous(asked.filter, reader.streamsBeginning);
      const wanted = seqsOf(reader, range);
      void io.recordRead?.(wanted);
      const { collectors, prunedRecords, seqs } = countReadable(path, reader, asked, wanted);
      const [[word, only] = []] = collectors;
      if (values.json === true) await showJson(asked, collectors, io);
      else if (word !== undefined && only !== undefined && collectors.size === 1) await showOne(word, asked, only, io);
      else await showSummary(asked, collectors, io);
      if (values.json !== true && [...collectors.values()].every(({ isEmpty }) => isEmpty()))
        await write(
          io.stderr,
          `scribe: ${nothingFits(range, reader.headSeq())}${nearlyChosen(reader, asked.filter, reader.headSeq())}\n`,
        );
      await noteMissing(prunedRecords, collectors, io);
      if (seqs.toSeq < wanted.toSeq) throw failure(noFurtherThan(seqs.toSeq));
      return 0;
    } finally {
      reader.close();
    }
  },
});
