/**
 * The records that a filter chooses, in the order in which they are found, and then those that are written: what a history
 * with --events would show. A call's steps are chosen with it. Text is looked for in what the page may show alone.
 */
import { setImmediate } from 'node:timers/promises';
import { openReader } from '../../journal/open.ts';
import type { JournalRecord } from '../../journal/types.ts';
import type { Matches } from '../../ui/answers.ts';
import type { Level } from '../export/level.ts';
import { candidatesOf } from '../history/candidates.ts';
import type { Entry } from '../history/entries.ts';
import { namesReads } from '../history/filter-options.ts';
import { onlyWith, passes } from '../history/filter.ts';
import { createScan } from '../history/scan.ts';
import { createSelection } from '../history/selection.ts';
import { watchJournal } from '../history/watch.ts';
import { nobodyNearly } from '../near-names.ts';
import { choosesAll, refuseAmbiguous } from '../things.ts';
import type { Chosen } from './filter-words.ts';
import { shownRecord } from './redact.ts';
import { shownText } from './shown-text.ts';

export interface MatchOptions {
  readonly path: string;
  readonly level: Level;
  readonly live: boolean;
  readonly signal: AbortSignal;
}

const TOLD_EVERY_MS = 100;
/** The page asks for more than matches meanwhile. */
const HELD_MS_MAX = 20;

const ONLY_READ = 'Calls that only read are no records, and so not on this page: scribe history shows them.';

const seqsOf = (entry: Entry): number[] => {
  switch (entry.kind) {
    case 'call': {
      const { received, events, completed } = entry;
      const records = [received?.record, ...events, completed?.record].filter((record) => record !== undefined);
      return records.map(({ seq }) => seq);
    }
    case 'event':
      return [entry.record.seq];
    case 'read':
    case 'pruned':
      return [];
  }
};

/** The entry with no more in its texts than the level lets through. */
const shownEntry = (level: Level, entry: Entry): Entry => {
  const shown = (record: JournalRecord): JournalRecord => shownRecord(level, record);
  switch (entry.kind) {
    case 'call': {
      const { received, events, completed } = entry;
      return {
        ...entry,
        received: received === null ? null : { ...received, record: shown(received.record) },
        completed: completed === null ? null : { ...completed, record: shown(completed.record) },
        events: events.map(shown),
      };
    }
    case 'event':
      return { ...entry, record: shown(entry.record) };
    case 'read':
    case 'pruned':
      return entry;
  }
};

const isTold = (entry: Entry, filter: Chosen['filter'], level: Level): boolean =>
  passes(filter, entry) && (filter.text === null || passes(filter, shownEntry(level, entry)));

/**
 * Ends when all is looked through and the journal does not grow, or by the signal. Throws, before it has said anything,
 * for what `scribe history` refuses.
 */
export async function* findMatches(chosen: Chosen, options: MatchOptions): AsyncGenerator<Matches> {
  const { path, level, live, signal } = options;
  const { things, filter, range } = chosen;
  const reader = openReader(path);
  const watch = live && range.until === null ? watchJournal(path) : null;
  const isOver = (): boolean => signal.aborted;
  signal.addEventListener('abort', () => watch?.close(), { once: true });
  try {
    refuseAmbiguous(things, reader.streamsBeginning);
    /** Methods are refused when it is known that no record has them: until then there is nothing to say. */
    const { refuseUnknown, unknownMethods } = await import('../history/methods.ts');
    const isInDoubt = unknownMethods(filter.methods).length > 0;
    let isFound = false;
    const selection = createSelection(choosesAll(things) ? {} : things);
    const headSeq = reader.headSeq();
    const rest = { reader, withEvents: true, withReads: false };
    const until = range.until ?? (headSeq === 0 ? null : ({ kind: 'record', seq: headSeq } as const));
    const asked = { ...rest, selection, range: { ...range, until } };
    const past = candidatesOf(asked, filter) ?? createScan({ ...asked, live: false, shownSeq: null }).past();
    const chosenOf = (entry: Entry): number[] => {
      if (!selection.has(entry) || !isTold(entry, filter, level)) return [];
      return seqsOf(filter.plugin === null ? entry : onlyWith(filter.plugin, entry));
    };
    let seqs: number[] = [];
    let throughSeq = 0;
    let toldMs = performance.now();
    let heldMs = toldMs;
    for await (const entry of past) {
      throughSeq = seqsOf(entry).at(-1) ?? throughSeq;
      seqs.push(...chosenOf(entry));
      if (seqs.length > 0) isFound = true;
      if (performance.now() - heldMs >= HELD_MS_MAX) {
        await setImmediate();
        heldMs = performance.now();
      }
      if (isOver()) return;
      if ((isInDoubt && !isFound) || performance.now() - toldMs < TOLD_EVERY_MS) continue;
      yield { seqs, throughSeq, isWhole: false, note: '' };
      seqs = [];
      toldMs = performance.now();
    }
    if (isInDoubt && !isFound) refuseUnknown(filter.methods);
    const nothing = (): string => {
      if (selection.isEmpty()) return nobodyNearly(reader, things, headSeq);
      return namesReads(filter.methods) ? ONLY_READ : '';
    };
    const note = isFound ? '' : nothing();
    yield { seqs, throughSeq: headSeq, isWhole: true, note: shownText(note) };
    if (watch === null) return;
    // Calls that were under way are begun again, and come whole when they have ended.
    const learned = { ...selection, learnsFrom: [] };
    const scan = createScan({ ...rest, selection: learned, range, live: true, shownSeq: headSeq });
    await scan.goLive();
    for (;;) {
      await watch.changed();
      if (isOver()) return;
      const news = scan.news().flatMap(chosenOf);
      if (news.length > 0) yield { seqs: news, throughSeq: reader.headSeq(), isWhole: true, note: '' };
    }
  } finally {
    watch?.close();
    reader.close();
  }
}
