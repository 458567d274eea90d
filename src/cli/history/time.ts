/** The moments that people type: --since and --until. Pure, but for the local time zone. */
import { misuse } from '../command.ts';
import { parseDurationMs } from '../../config/units.ts';

/** For the help of whatever takes one. */
export const TIME_FORMS =
  'A time is 2026-11-21T03:12:00Z (with a zone, or local without), 2026-11-21, 03:12 (today), @SECONDS since 1970, or how long ago: 90s, 15m, 2h30m, 7d.';

const NS_PER_MS = 1_000_000n;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const DATE_AND_TIME = /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?$/;
const CLOCK = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/;
const SECONDS = /^@(\d{1,11})(?:\.(\d{1,9}))?$/;

const atClock = (nowMs: number, [hours = 0, minutes = 0, seconds = 0]: readonly number[]): number =>
  hours > 23 || minutes > 59 || seconds > 59 ? Number.NaN : new Date(nowMs).setHours(hours, minutes, seconds, 0);

const msOf = (text: string, nowMs: number): number => {
  const agoMs = parseDurationMs(text);
  if (agoMs !== null) return nowMs - agoMs;
  // Without a time of day, ECMAScript takes a date for one in UTC.
  if (DATE.test(text)) return Date.parse(`${text}T00:00`);
  if (DATE_AND_TIME.test(text)) return Date.parse(text.replace(' ', 'T'));
  const clock = CLOCK.exec(text);
  if (clock !== null)
    return atClock(
      nowMs,
      clock.slice(1).map((part: string | undefined) => Number(part ?? 0)),
    );
  const [, seconds, fraction = ''] = SECONDS.exec(text) ?? [];
  return seconds === undefined ? Number.NaN : Number(seconds) * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
};

/** Nanoseconds since 1970; throws for what is no time, naming the option. */
export const parseTime = (text: string, option: string, nowMs: number = Date.now()): bigint => {
  const ms = msOf(text, nowMs);
  if (Number.isNaN(ms)) throw misuse(`${option} ${text}: that is no time. ${TIME_FORMS}`);
  return BigInt(Math.round(ms)) * NS_PER_MS;
};
