/**
 * `scribe history`: who called what, when, and how it ended, from the journal, with its daemon up or down. Reads what is asked;
 * history/show.ts answers it.
 */
import { helpSearchSoon } from '../journal/search-windows.ts';
import { command, misuse, type Values } from './command.ts';
import { filterOf, filterOptions, namesReads } from './history/filter-options.ts';
import type { HistoryQuestion } from './history/show.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { choosesAll, thingFilterOf, thingOptions } from './things.ts';
import { parseRange, rangeOptions } from './time-argument.ts';

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

const readOptions = (values: Values<typeof options>): HistoryQuestion => {
  const { since, until } = values;
  if (values.follow === true && until !== undefined)
    throw misuse('--follow goes on, and --until ends: give one of them.');
  checkCursor(values);
  checkReverse(values);
  const filter = filterOf(values);
  return {
    wanted: thingFilterOf(values),
    filter,
    range: parseRange({ since, until }),
    limit: limitOf(values.limit),
    withReads: values.reads === true || namesReads(filter.methods),
    withEvents: values.events === true,
    isReversed: values.reverse === true,
    isFollowed: values.follow === true,
    cursorFile: values['cursor-file'] ?? null,
    isJson: values.json === true,
    isUtc: values.utc === true,
  };
};

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
    const asked = readOptions(values);
    const path = await readableJournal(await rootOf(values));
    // Things are looked for in all that there is. The thread for that comes up while what shows them is loaded.
    const helper = choosesAll(asked.wanted) ? null : helpSearchSoon(path);
    const { showHistory } = await import('./history/show.ts');
    return showHistory(path, helper, asked, io);
  },
});
