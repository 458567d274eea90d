/**
 * What is looked at, as it stands in the address: everything that somebody else with the page open needs to see the same.
 * What is not said is left at its default, so that the address of the first look is short. Pure.
 */
import type { TimeWindow } from './time-window.ts';

export interface ViewState {
  /** null: all of it; an end that is infinite is that of all that is recorded. */
  readonly window: TimeWindow | null;
  /** Words of `scribe history`; '' for everything. */
  readonly filter: string;
  /** The record that is open. */
  readonly record: number | null;
  /** Goes on with what is written. */
  readonly live: boolean;
  /** Also the steps of calls, which a history shows with --events. */
  readonly steps: boolean;
}

export const FIRST_VIEW: ViewState = { window: null, filter: '', record: null, live: false, steps: true };

const timeText = (ms: number): string => new Date(ms).toISOString();

const windowOf = (since: string | null, until: string | null): TimeWindow | null => {
  if (since === null && until === null) return null;
  const fromMs = since === null ? Number.NEGATIVE_INFINITY : Date.parse(since);
  const toMs = until === null ? Number.POSITIVE_INFINITY : Date.parse(until);
  return fromMs < toMs ? { fromMs, toMs } : null;
};

const RECORD = /^[1-9]\d{0,14}$/;

/** @param hash  of the address, with or without its # */
export const viewOf = (hash: string): ViewState => {
  const given = new URLSearchParams(hash.replace(/^#/, ''));
  const record = given.get('record') ?? '';
  return {
    window: windowOf(given.get('since'), given.get('until')),
    filter: given.get('filter') ?? '',
    record: RECORD.test(record) ? Number(record) : null,
    live: given.get('live') === 'yes',
    steps: given.get('steps') !== 'no',
  };
};

/** In whole milliseconds; an end that is not said is none of its own. */
const timesOf = ({ fromMs, toMs }: TimeWindow): Readonly<Record<string, string>> => {
  const sinceMs = Math.floor(fromMs);
  const untilMs = Math.max(sinceMs + 1, Math.floor(toMs));
  return {
    ...(Number.isFinite(fromMs) ? { since: timeText(sinceMs) } : {}),
    ...(Number.isFinite(toMs) ? { until: timeText(untilMs) } : {}),
  };
};

/** What `viewOf` reads; '' for the first view. */
export const hashOf = ({ window, filter, record, live, steps }: ViewState): string => {
  // A view that goes on has an end that moves: its width is what stays.
  const said = new URLSearchParams(window === null ? {} : timesOf(window));
  if (filter !== '') said.set('filter', filter);
  if (record !== null) said.set('record', String(record));
  if (live) said.set('live', 'yes');
  if (!steps) said.set('steps', 'no');
  const text = said.toString();
  return text === '' ? '' : `#${text}`;
};
