/**
 * Answers what `scribe history` is asked: finds which entries of a journal are meant, and has them shown in order, as far as
 * they are wanted, or as they come. Reads no options.
 */
import { resolve } from 'node:path';
import { openReader } from '../../journal/open.ts';
import { readAhead } from '../../journal/read-ahead.ts';
import type { SoonHelp } from '../../journal/search-windows.ts';
import type { ExitStatus } from '../command.ts';
import { openCursor, rangeBehind } from '../cursor.ts';
import { prunedAmong, type ShowTime, withAgo } from '../format.ts';
import { createGiven } from '../given.ts';
import { type Io, tellerTo, write } from '../io.ts';
import { timesIn } from '../local-zone.ts';
import { choosesAll, refuseAmbiguous, type ThingFilter } from '../things.ts';
import { nothingFits, type Range, seqsOf } from '../time-argument.ts';
import { candidatesOf } from './candidates.ts';
import type { Entry } from './entries.ts';
import { type Filter, onlyWith, passes, passesAll } from './filter.ts';
import { showJson } from './json.ts';
import { createNames } from './names.ts';
import { followFromCursor } from './resume.ts';
import { pastFromItsEnd } from './reverse.ts';
import { type Shown, showTable } from './rows.ts';
import { createScan, type Scan } from './scan.ts';
import { createSelection, type Selection } from './selection.ts';
import { type JournalWatch, watchJournal } from './watch.ts';

export interface HistoryQuestion {
  readonly wanted: ThingFilter;
  readonly filter: Filter;
  readonly range: Range;
  /** Only the newest so many; Infinity: all. */
  readonly limit: number;
  readonly withReads: boolean;
  /** What was done on behalf of calls, too. */
  readonly withEvents: boolean;
  readonly isReversed: boolean;
  readonly isFollowed: boolean;
  readonly cursorFile: string | null;
  readonly isJson: boolean;
  readonly isUtc: boolean;
}

/** How long ago is for people who look now: not in what is kept, nor where the rows stay while time goes on. */
const showTimeFor = ({ isUtc, isFollowed }: HistoryQuestion, { stdout }: Io): ShowTime => {
  const showTime = timesIn({ utc: isUtc });
  if (stdout.isTTY !== true || isFollowed) return showTime;
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
    await watch.reading(async () => {
      for (const entry of scan.news()) if (isChosen(entry)) await shown.show(entry);
    });
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

/**
 * @param helper  looks for things, too; null: none are chosen
 */
export const showHistory = async (
  path: string,
  helper: SoonHelp | null,
  question: HistoryQuestion,
  io: Io,
): Promise<ExitStatus> => {
  const { wanted, filter, limit, withReads, isReversed, cursorFile } = question;
  // Things are looked for from the start, in whichever order they are shown.
  const isOfThings = !choosesAll(wanted);
  if (isOfThings) void readAhead(path, 'start');
  else if (isReversed && limit === Number.POSITIVE_INFINITY) void readAhead(path, 'end');
  const reader = openReader(path, helper);
  // Before anything is read, so that nothing can be written unseen.
  const watch = question.isFollowed ? watchJournal(path) : null;
  try {
    refuseAmbiguous(wanted, reader.streamsBeginning);
    const headSeq = reader.headSeq();
    // It goes with --follow.
    const tell = tellerTo(io);
    using cursor = cursorFile === null ? null : await openCursor(resolve(cursorFile), path, reader, tell);
    const range = cursor === null ? question.range : rangeBehind(cursor, question.range);
    const selection = createSelection(wanted);
    await noteReads(filter, withReads, io);
    const plugin = question.withEvents ? null : filter.plugin;
    const withEvents = question.withEvents || filter.plugin !== null;
    const [live, shownSeq] = [watch !== null, cursor?.seq ?? null];
    const scan = createScan({ reader, selection, withEvents, withReads, range, live, shownSeq });
    const names = createNames(reader);
    const written = question.isJson
      ? showJson(io.stdout, names, reader.hashesOf)
      : showTable(io, names, showTimeFor(question, io));
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
    const inJournal = !withReads && watch === null;
    const isBackwards = isReversed || (inJournal && limit !== Number.POSITIVE_INFINITY);
    const among = { reader, selection, withEvents, range };
    const candidates = inJournal ? candidatesOf(among, filter, { isReversed: isBackwards }) : null;
    const entries = candidates ?? (isBackwards ? pastFromItsEnd(among) : scan.past());
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
    if (!past.isAny) (await import('./methods.ts')).refuseUnknown(filter.methods);
    await shown.flush();
    void io.recordRead?.({ ...seqsOf(reader, range), shown: past.shown });
    const isNobody = selection.isEmpty() && !past.isAny;
    if (isNobody) {
      const { nobodyNearly } = await import('../near-names.ts');
      await write(io.stderr, `scribe: ${nobodyNearly(reader, wanted, headSeq)}\n`);
    } else await noteMissing(past, isOfThings || !passesAll(filter), nothingFits(range, headSeq), io);
    return 0;
  } finally {
    watch?.close();
    reader.close();
  }
};
