/**
 * The one argument for a moment, of every command: `--at`, `--since`, `--until` take a time, a duration back or a record
 * number. Owns what people may type and what it means in a journal; reads no clock but the one it is told, and shows nothing.
 * Pure, but for the local time zone.
 */
import { parseDurationMs } from '../config/units.ts';
import type { JournalReader } from '../journal/reader.ts';
import { type Option, misuse } from './command.ts';
import { unlessDamaged } from './damage.ts';
import { needLocalZone } from './local-zone.ts';

/**
 * A moment by the wall clock, or just after a record. Now is behind all records, whatever their clock said: it may have gone ahead
 * of this one, and have been set back.
 */
export type Moment =
  | { readonly kind: 'time'; readonly atNs: bigint; readonly isNow?: true }
  | { readonly kind: 'record'; readonly seq: number };

/** For the help of whatever takes one. */
export const MOMENT_FORMS =
  'A moment is a time: 2026-11-21T03:12:00.5Z (with a zone, or local without), 2026-11-21, 03:12 (today), @SECONDS since 1970, now, today, yesterday; or how long ago: 90s, 15m, 2h30m, 7d; or the number of a record.';

export const isNow = (moment: Moment): boolean => moment.kind === 'time' && moment.isNow === true;

const NS_PER_MS = 1_000_000n;
const NS_PER_SECOND = 1_000_000_000n;
/** The first and the last time that a record can have: in the years 1970 and 2262. No 64 bits hold one far before or behind. */
const FIRST_NS = 0n;
const LAST_NS = 2n ** 63n - 1n;

const possible = (atNs: bigint): bigint => (atNs < FIRST_NS ? FIRST_NS : atNs < LAST_NS ? atNs : LAST_NS);
const DATE = /^(\d{4})-(\d{2})-(\d{2})(?:[T ](.+))?$/;
const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?: ?(Z|UTC|[+-]\d{2}:?\d{2}))?$/;
const SECONDS = /^@(\d{1,11})(?:\.(\d{1,9}))?$/;
const RECORD = /^[1-9]\d{0,14}$/;

interface Day {
  readonly year: number;
  /** From 0, as Date counts. */
  readonly month: number;
  readonly day: number;
}

interface Clock {
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly fractionNs: bigint;
  /** null: the local zone. */
  readonly zoneMinutes: number | null;
}

const MIDNIGHT: Clock = { hours: 0, minutes: 0, seconds: 0, fractionNs: 0n, zoneMinutes: null };

const fractionNsOf = (digits: string): bigint => BigInt(digits.padEnd(9, '0'));

const localDay = (ms: number): Day => {
  needLocalZone();
  const date = new Date(ms);
  return { year: date.getFullYear(), month: date.getMonth(), day: date.getDate() };
};

const minutesOfZone = (zone: string): number | null => {
  if (zone === 'Z' || zone === 'UTC') return 0;
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(-2))];
  if (hours > 14 || minutes > 59) return null;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
};

const clockOf = (text: string): Clock | null => {
  const [, hours, minutes, seconds = '0', fraction = '', zone] = CLOCK.exec(text) ?? [];
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return null;
  const zoneMinutes = zone === undefined ? null : minutesOfZone(zone);
  if (zone !== undefined && zoneMinutes === null) return null;
  return {
    hours: Number(hours),
    minutes: Number(minutes),
    seconds: Number(seconds),
    fractionNs: fractionNsOf(fraction),
    zoneMinutes,
  };
};

/** What a text means by the clock; null: it is no time of this form; a sentence: why it can't be said which is meant. */
type Meant = bigint | string | null;

/** null for a day that no calendar has. */
const nsOf = ({ year, month, day }: Day, clock: Clock): Meant => {
  const { hours, minutes, seconds, fractionNs, zoneMinutes } = clock;
  const calendar = new Date(Date.UTC(year, month, day));
  if (calendar.getUTCFullYear() !== year || calendar.getUTCMonth() !== month || calendar.getUTCDate() !== day)
    return null;
  const ms =
    zoneMinutes === null
      ? localMs({ year, month, day }, clock)
      : Date.UTC(year, month, day, hours, minutes, seconds) - zoneMinutes * 60_000;
  return typeof ms === 'string' ? ms : BigInt(ms) * NS_PER_MS + fractionNs;
};

/** By how much clocks are put forward and back, somewhere. */
const CLOCK_CHANGES_MS = [30, 60, 120].map((minutes) => minutes * 60_000);

/**
 * A sentence for a time that clocks passed over, or showed twice: a range must not be cut an hour off without a word. A day
 * begins when it does.
 */
const localMs = ({ year, month, day }: Day, { hours, minutes, seconds }: Clock): number | string => {
  needLocalZone();
  const date = new Date(year, month, day, hours, minutes, seconds);
  const ms = date.getTime();
  if (hours === 0 && minutes === 0 && seconds === 0) return ms;
  const isThatTime = (other: Date): boolean => other.getHours() === hours && other.getMinutes() === minutes;
  const remedy = 'say the zone, too: 03:12Z, 03:12+01:00.';
  if (!isThatTime(date)) return `clocks were put forward over that time; ${remedy}`;
  if (CLOCK_CHANGES_MS.some((change) => [ms - change, ms + change].some((other) => isThatTime(new Date(other)))))
    return `clocks were put back and showed that time twice; ${remedy}`;
  return ms;
};

const nsOfDate = (text: string): Meant => {
  const [, year, month, day, rest] = DATE.exec(text) ?? [];
  if (year === undefined) return null;
  const clock = rest === undefined ? MIDNIGHT : clockOf(rest);
  return clock === null ? null : nsOf({ year: Number(year), month: Number(month) - 1, day: Number(day) }, clock);
};

/** A day as people call it. */
const nsOfWord = (text: string, nowMs: number): Meant => {
  if (text === 'now') return BigInt(Math.round(nowMs)) * NS_PER_MS;
  if (text !== 'today' && text !== 'yesterday') return null;
  const today = localDay(nowMs);
  if (text === 'today') return nsOf(today, MIDNIGHT);
  // By the calendar: a day that began summer time has 23 hours.
  const { year, month, day } = today;
  return nsOf(localDay(new Date(year, month, day - 1).getTime()), MIDNIGHT);
};

const nsOfSeconds = (text: string): bigint | null => {
  const [, seconds, fraction = ''] = SECONDS.exec(text) ?? [];
  return seconds === undefined ? null : BigInt(seconds) * NS_PER_SECOND + fractionNsOf(fraction);
};

/** "15m", and as other programs take it: "-15m", "15m ago". */
const AGO = /^(?:-(\w+)|(\w+)(?: ago)?)$/;

const nsOfAgo = (text: string, nowMs: number): bigint | null => {
  const [, back, ago] = AGO.exec(text) ?? [];
  const agoMs = parseDurationMs(back ?? ago ?? '');
  return agoMs === null ? null : BigInt(Math.round(nowMs - agoMs)) * NS_PER_MS;
};

const nsOfToday = (text: string, nowMs: number): Meant => {
  const clock = clockOf(text);
  return clock === null ? null : nsOf(localDay(nowMs), clock);
};

/** Throws for what is no moment, naming the option. */
export const parseMoment = (text: string, option: string, nowMs: number = Date.now()): Moment => {
  if (RECORD.test(text)) return { kind: 'record', seq: Number(text) };
  if (/^0+$/.test(text)) throw misuse(`${option} ${text}: there is no such record; the first one is 1.`);
  const atNs =
    nsOfDate(text) ?? nsOfToday(text, nowMs) ?? nsOfAgo(text, nowMs) ?? nsOfSeconds(text) ?? nsOfWord(text, nowMs);
  if (atNs === null) throw misuse(`${option} ${text}: that is no time. ${MOMENT_FORMS}`);
  if (typeof atNs === 'string') throw misuse(`${option} ${text}: ${atNs}`);
  return { kind: 'time', atNs: possible(atNs), ...(text === 'now' ? { isNow: true } : {}) };
};

/** The options of a range, for a command that takes one. */
export const rangeOptions = {
  since: { value: 'MOMENT', about: `Only what began at this moment or later. ${MOMENT_FORMS}` },
  until: { value: 'MOMENT', about: 'Only what began at this moment or earlier.' },
} as const satisfies Readonly<Record<string, Option>>;

/** null: without an end on that side. */
export interface Range {
  readonly since: Moment | null;
  readonly until: Moment | null;
}

/** Throws where one of them is no moment, or the range ends before it begins. */
export const parseRange = (
  { since, until }: { readonly since?: string | undefined; readonly until?: string | undefined },
  nowMs: number = Date.now(),
): Range => {
  const range = {
    since: since === undefined ? null : parseMoment(since, '--since', nowMs),
    until: until === undefined ? null : parseMoment(until, '--until', nowMs),
  };
  if (isBackwards(range)) throw misuse(`--since ${since} is later than --until ${until}.`);
  return range;
};

export const isBackwards = ({ since, until }: Range): boolean => {
  if (since?.kind === 'time' && until?.kind === 'time') return since.atNs > until.atNs;
  return since?.kind === 'record' && until?.kind === 'record' && since.seq > until.seq;
};

/** What a moment is looked up in. */
export type Timeline = Pick<JournalReader, 'headSeq' | 'seqAtTime'>;

/**
 * The last record that a moment has seen: what has happened by then is records 1 to this; 0 before them all. Where it is not found
 * before the journal is damaged it is the newest: whoever reads on to it meets that.
 */
export const seqAt = (timeline: Timeline, moment: Moment): number => {
  const newest = timeline.headSeq();
  if (moment.kind === 'record') return Math.min(newest, moment.seq);
  if (isNow(moment)) return newest;
  return Math.min(newest, unlessDamaged(() => timeline.seqAtTime(moment.atNs)) ?? newest);
};

export interface Seqs {
  readonly fromSeq: number;
  /** Less than fromSeq when nothing is in the range. */
  readonly toSeq: number;
}

const firstSince = (timeline: Timeline, since: Moment): number => {
  if (since.kind === 'record') return since.seq;
  return (isNow(since) ? timeline.headSeq() : timeline.seqAtTime(since.atNs - 1n)) + 1;
};

/** What is said of a range in which nothing fits: a record that is not there yet is mostly a slip. */
export const nothingFits = ({ since }: Range, headSeq: number): string =>
  since?.kind === 'record' && since.seq > headSeq
    ? `Nothing was recorded that fits: the journal ends with record ${headSeq}.`
    : 'Nothing was recorded that fits.';

/** The records of a range, both ends within it. */
export const seqsOf = (timeline: Timeline, { since, until }: Range): Seqs => ({
  fromSeq: since === null ? 1 : firstSince(timeline, since),
  toSeq: until === null ? timeline.headSeq() : seqAt(timeline, until),
});
