/** `scribe history`: who called what, when, and how it ended, from the journal, with its daemon up or down. */
import { resolve } from 'node:path';
import { openReader } from '../journal/open.ts';
import { readAhead } from '../journal/read-ahead.ts';
import { callMethods } from '../domain/call/catalogue.ts';
import { command, misuse, type Values } from './command.ts';
import { openCursor, rangeBehind } from './cursor.ts';
import { prunedAmong, type ShowTime, withAgo } from './format.ts';
import { candidatesOf } from './history/candidates.ts';
import type { Entry } from './history/entries.ts';
import { type Filter, onlyWith, passes, passesAll } from './history/filter.ts';
import { filterOf, filterOptions } from './history/filter-options.ts';
import { createNames } from './history/names.ts';
import { followFromCursor } from './history/resume.ts';
import { pastFromItsEnd } from './history/reverse.ts';
import { createScan, type Scan } from './history/scan.ts';
import { createSelection, type Selection } from './history/selection.ts';
import { showJson } from './history/json.ts';
import { type Shown, showTable } from './history/rows.ts';
import { type JournalWatch, watchJournal } from './history/watch.ts';
import { createGiven } from './given.ts';
import { type Io, tellerTo, write } from './io.ts';
import { timesIn } from './local-zone.ts';
import { nothingFits, parseRange, rangeOptions, seqsOf } from './time-argument.ts';
import { choosesAll, refuseAmbiguous, thingFilterOf, thingOptions } from './things.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';

const options = {
  root: rootOption,
  config: configOption,
  pod: thingOptions.pod,
  container: thingOptions.container,
  image: thingOptions.image,
  namespace: thingOptions.namespace,
  label: thingOptions.label,
  ...filterOptions,
  ...rangeOptions,
  reads: { about: 'Also calls that only read: List, Status, Stats, Version.' },
  events: { about: 'Also what was done on behalf of each call, beneath it, and everything else that was recorded.' },
  follow: { short: 'f', about: 'Goes on: shows what is being recorded. A call is then shown when it has ended.' },
  'cursor-file': {
    value: 'FILE',
    about:
      'With --follow: where it has come to, saved with whatever is printed. Started again it goes on there, and shows calls that were under way when they have ended. The first time it begins with all there is, or at --since, and every call comes when it has ended.',
  },
  limit: { value: 'NUMBER', short: 'n', about: 'Only the newest so many.' },
  reverse: { short: 'r', about: 'The newest first.' },
  utc: { about: 'Times in UTC, instead of in the local zone.' },
  json: jsonOption,
} as const;

const limitOf = (text: string | undefined): number => {
  if (text === undefined) return Number.POSITIVE_INFINITY;
  if (!/^\d{1,9}$/.test(text)) throw misuse(`--limit ${text}: that is no number from 0 to 999999999.`);
  return Number(text);
};

/** How long ago is for people who look now: not in what is kept, nor where the rows stay while time goes on. */
const showTimeFor = ({ utc, follow }: Values<typeof options>, { stdout }: Io): ShowTime => {
  const showTime = timesIn({ utc });
  if (stdout.isTTY !== true || follow === true) return showTime;
  return withAgo(showTime, BigInt(Date.now()) * 1_000_000n);
};

/** Where the audit rules want it, a call that only reads is a record like any other. */
const isRead = (entry: Entry): boolean => entry.kind === 'call' && entry.received?.event.body.request.method === 'Read';

/** What is shown: entries about chosen objects that pass the filter. */
const chooser =
  (selection: Selection, filter: Filter, withReads: boolean): ((entry: Entry) => boolean) =>
  (entry) =>
    (withReads || !isRead(entry)) && selection.has(entry) && passes(filter, entry);

interface Past {
  /** Whether anything fits, or is pruned. */
  readonly isAny: boolean;
  readonly shown: number;
  readonly prunedRecords: number;
}

/** How what has passed comes, and how it is shown: of the newest so many nothing older need be read. */
interface Order {
  readonly isBackwards: boolean;
  readonly isReversed: boolean;
  readonly limit: number;
}

/** Of what is wanted so many: what is left of pruned records is shown between them, and is none of them. */
const isCounted = ({ kind }: Entry): boolean => kind !== 'pruned';

const showPast = async (
  entries: AsyncIterable<Entry>,
  { isBackwards, isReversed, limit }: Order,
  isChosen: (entry: Entry) => boolean,
  shown: Shown,
): Promise<Past> => {
  const isAtOnce = isBackwards ? isReversed : limit === Number.POSITIVE_INFINITY;
  const newest: Entry[] = [];
  let isAny = false;
  let count = 0;
  let prunedRecords = 0;
  for await (const entry of entries) {
    if (entry.kind === 'pruned') prunedRecords += entry.toSeq - entry.fromSeq + 1;
    if (!isChosen(entry)) continue;
    isAny = true;
    if (isCounted(entry)) count += 1;
    if (isBackwards && count > limit) break;
    if (isAtOnce) await shown.show(entry);
    else newest.push(entry);
    if (!isBackwards && count > limit && isCounted(entry)) newest.splice(0, newest.findIndex(isCounted) + 1);
  }
  for (const entry of isBackwards ? newest.reverse() : newest) await shown.show(entry);
  return { isAny, shown: Math.min(count, limit), prunedRecords };
};

const follow = async (
  scan: Scan,
  isChosen: (entry: Entry) => boolean,
  watch: JournalWatch,
  shown: Shown,
): Promise<never> => {
  for (;;) {
    await watch.changed();
    for (const entry of scan.news()) if (isChosen(entry)) await shown.show(entry);
    await shown.flush();
  }
};

const noteMissing = async (
  { isAny, prunedRecords }: Past,
  isFiltered: boolean,
  nothing: string,
  io: Io,
): Promise<void> => {
  if (isFiltered && prunedRecords > 0) await write(io.stderr, `scribe: ${prunedAmong(prunedRecords)}\n`);
  else if (!isAny) await write(io.stderr, `scribe: ${nothing}\n`);
};

/** A row of a read says the process that called and its user, not what program that was. */
const noteReads = async ({ executable }: Filter, withReads: boolean, { stderr }: Io): Promise<void> => {
  if (executable === null || !withReads) return;
  await write(
    stderr,
    'scribe: Of calls that only read the program is not recorded, except where an audit rule has level "request": --executable leaves the others out; --uid chooses among them.\n',
  );
};

const checkCursor = ({ follow, limit, reads, ...values }: Values<typeof options>): void => {
  if (values['cursor-file'] === undefined) return;
  if (follow !== true) throw misuse('--cursor-file goes with --follow.');
  if (limit !== undefined) throw misuse('--cursor-file says where to begin, and so does --limit: give one of them.');
  if (reads === true || namesReads(values.method ?? []))
    throw misuse('--cursor-file counts records; calls that only read have none.');
};

const checkReverse = ({ reverse, follow, reads, method = [] }: Values<typeof options>): void => {
  if (reverse !== true) return;
  if (follow === true) throw misuse('--follow goes on at the end, and --reverse begins there: give one of them.');
  if (reads === true || namesReads(method)) throw misuse('--reverse does not go with calls that only read.');
};

const readOptions = (values: Values<typeof options>) => {
  const { since, until } = values;
  if (values.follow === true && until !== undefined)
    throw misuse('--follow goes on, and --until ends: give one of them.');
  checkCursor(values);
  checkReverse(values);
  return {
    wanted: thingFilterOf(values),
    filter: filterOf(values),
    range: parseRange({ since, until }),
    limit: limitOf(values.limit),
  };
};

/** Calls that are recorded whole; a method that is none of them is looked for among those that only read. */
const RECORDED: readonly string[] = callMethods.map((method) => method.toLowerCase());

const namesReads = (methods: readonly string[]): boolean =>
  methods.some((method) => !RECORDED.includes(method.toLowerCase()));

export const history = command({
  name: 'history',
  summary: 'who called what, when, and how it ended',
  description: [
    'Shows the calls that changed something, or were meant to, in the order in which they began: when, which object, who called (program, process and user, as the kernel says), how long it took and how it ended; and between them how containers and pods ended, and when the daemon started and stopped. Objects are called by their names after they are gone, too.',
    'On a terminal rows have colours (unless NO_COLOR is set), and times say how long ago that was; what goes into a pipe or a file has neither. Reads the journal itself, with the daemon up or down, and changes nothing. What was pruned because it was old is shown as that.',
    'With --json every record is an object of its own, with all of its columns: seq, at and mono (nanoseconds, as text), boot, type, v, stream, cause, call, bodyHash, hash, body; and beside them time (UTC) and object (what it is about, with its names; of records of a call: what that is about). The records of a call come one after another.',
  ],
  options,
  examples: [
    ['scribe history --since 10m', 'What happened in the last ten minutes.'],
    ['scribe history --pod default/web --events', 'Everything about a pod, step by step.'],
    ['scribe history --failed --since 2026-11-21', 'What has gone wrong since that day.'],
    ['scribe history --method ExecSync --container nginx --follow', 'Watches the probes of a container.'],
    [
      'scribe history --failed --follow --json --cursor-file /var/lib/alerts/scribe.cursor',
      'Feeds whoever is to hear of failures, and misses none when it is started again.',
    ],
    [
      'scribe history --json | jq -r \'select(.type == "container.exited") | [.time, .object.name, .body.exitStatus] | @tsv\'',
      'When each container exited, and with which status.',
    ],
  ],
  readsIn: readsInRoot,
  isPaged: ({ follow }) => follow !== true,
  run: async (values, _operands, io) => {
    const { wanted, filter, range: askedRange, limit } = readOptions(values);
    const path = await readableJournal(await rootOf(values));
    const cursorFile = values['cursor-file'];
    // Things are looked for from the start, in whichever order they are shown.
    const isOfThings = !choosesAll(wanted);
    if (isOfThings) void readAhead(path, 'start');
    else if (values.reverse === true && limit === Number.POSITIVE_INFINITY) void readAhead(path, 'end');
    const reader = openReader(path, { isSearchedSoon: isOfThings });
    // Before anything is read, so that nothing can be written unseen.
    const watch = values.follow === true ? watchJournal(path) : null;
    try {
      refuseAmbiguous(wanted, reader.streamsBeginning);
      const headSeq = reader.headSeq();
      // It goes with --follow.
      const tell = tellerTo(io);
      using cursor = cursorFile === undefined ? null : await openCursor(resolve(cursorFile), path, reader, tell);
      const range = cursor === null ? askedRange : rangeBehind(cursor, askedRange);
      const selection = createSelection(wanted);
      const withReads = values.reads === true || namesReads(filter.methods);
      await noteReads(filter, withReads, io);
      const plugin = values.events === true ? null : filter.plugin;
      const withEvents = values.events === true || filter.plugin !== null;
      const [live, shownSeq] = [watch !== null, cursor?.seq ?? null];
      const scan = createScan({ reader, selection, withEvents, withReads, range, live, shownSeq });
      const names = createNames(reader);
      const written =
        values.json === true
          ? showJson(io.stdout, names, reader.hashesOf)
          : showTable(io, names, showTimeFor(values, io));
      const fromSeq = Math.max(seqsOf(reader, range).fromSeq, (shownSeq ?? 0) + 1);
      const given = createGiven(fromSeq, scan.readSeq);
      const shown: Shown = {
        ...written,
        show: async (entry) => {
          if (live) await given.giving(1);
          await written.show(plugin === null ? entry : onlyWith(plugin, entry));
        },
      };
      const isChosen = chooser(selection, filter, withReads);
      // Where nothing is shown yet it began here all the same.
      if (cursor?.isNew === true) await cursor.save(Math.min(fromSeq - 1, headSeq));
      if (live) void io.recordRead?.({ fromSeq }, given.atEnd);
      if (watch !== null && cursor !== null) return await followFromCursor({ scan, isChosen, shown, watch, cursor });
      const isReversed = values.reverse === true;
      const inJournal = !withReads && watch === null;
      const isBackwards = isReversed || (inJournal && limit !== Number.POSITIVE_INFINITY);
      const asked = { reader, selection, withEvents, range };
      const candidates = inJournal ? candidatesOf(asked, filter, { isReversed: isBackwards }) : null;
      const entries = candidates ?? (isBackwards ? pastFromItsEnd(asked) : scan.past());
      const past = await showPast(entries, { isBackwards, isReversed, limit }, isChosen, shown).catch(
        async (error: unknown) => {
          // What was found before it is not held back.
          await shown.flush();
          throw error;
        },
      );
      if (watch !== null) {
        await shown.flush();
        return await follow(scan, isChosen, watch, shown);
      }
      if (!past.isAny) (await import('./history/methods.ts')).refuseUnknown(filter.methods);
      await shown.flush();
      void io.recordRead?.({ ...seqsOf(reader, range), shown: past.shown });
      const isNobody = selection.isEmpty() && !past.isAny;
      if (isNobody) {
        const { nobodyNearly } = await import('./near-names.ts');
        await write(io.stderr, `scribe: ${nobodyNearly(reader, wanted, headSeq)}\n`);
      } else await noteMissing(past, isOfThings || !passesAll(filter), nothingFits(range, headSeq), io);
      return 0;
    } finally {
      watch?.close();
      reader.close();
    }
  },
});
