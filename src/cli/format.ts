/**
 * How numbers, times and other people's texts look in tables. Pure. Texts of clients, images and plugins may hold
 * anything: no control character in them reaches the terminal.
 */

// C0, DEL, C1, line and paragraph separators, and what changes the direction of text.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

const escapeOf = (character: string): string => {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  return `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`;
};

/** JSON on a line of its own. What JSON itself leaves as it is could still steer a terminal: it is escaped, too. */
export const jsonLine = (value: unknown): string => {
  const text = JSON.stringify(value).replace(
    UNPRINTABLE,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );
  return `${text}\n`;
};

/** One line without control characters: those are shown as escapes. */
export const printable = (text: string): string => text.replace(UNPRINTABLE, escapeOf);

/** A command in words; what the node's policy has sealed is told of, and not shown. */
export const commandText = (cmd: readonly (string | object)[]): string =>
  cmd.map((word) => (typeof word === 'string' ? word : '(sealed)')).join(' ');

const two = (value: number): string => String(value).padStart(2, '0');

const NS_PER_MS = 1_000_000n;

/** How far local time is from UTC at a moment: +01:00. */
const zoneOf = (time: Date): string => {
  const minutes = -time.getTimezoneOffset();
  return `${minutes < 0 ? '-' : '+'}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
};

/** A moment for people, with milliseconds. */
export type ShowTime = (atNs: bigint) => string;

/** 2026-11-21 01:47:12.345Z */
export const shortUtcTime: ShowTime = (atNs) => new Date(Number(atNs / NS_PER_MS)).toISOString().replace('T', ' ');

/** Local time with its zone: 2026-11-21 02:47:12.345+01:00. */
export const localTime: ShowTime = (atNs) => {
  const time = new Date(Number(atNs / NS_PER_MS));
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  const clock = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return `${day} ${clock}.${String(time.getMilliseconds()).padStart(3, '0')}${zoneOf(time)}`;
};

/** With how long ago it was beside it; what is not past by this clock has none. */
export const withAgo =
  (showTime: ShowTime, nowNs: bigint): ShowTime =>
  (atNs) =>
    atNs > nowNs ? showTime(atNs) : `${showTime(atNs)}  ${duration(nowNs - atNs)} ago`;

/** RFC 3339 in UTC with nanoseconds. */
export const utcTime = (atNs: bigint): string => {
  const seconds = new Date(Number(atNs / NS_PER_MS)).toISOString().slice(0, 19);
  return `${seconds}.${String(atNs % 1_000_000_000n).padStart(9, '0')}Z`;
};

/** 850 µs, 12.3 ms, 4.56 s, 2 min 5 s, 3 h 12 min, 4 d 2 h. By a clock that was set back meanwhile no time has passed. */
export const duration = (ns: bigint): string => {
  const us = Math.max(0, Number(ns) / 1000);
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${threeDigits(us / 1000)} ms`;
  const seconds = us / 1e6;
  if (seconds < 60) return `${threeDigits(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
};

const threeDigits = (value: number): string => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);

const BYTE_UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

export const bytes = (count: number): string => {
  if (count < 1024) return `${count} B`;
  const power = Math.min(BYTE_UNITS.length, Math.floor(Math.log2(count) / 10));
  return `${(count / 1024 ** power).toFixed(1)} ${BYTE_UNITS[power - 1]}`;
};

/** 1,234,567 */
export const grouped = (count: number): string => count.toLocaleString('en-US');

/** "1 record", "2 records". */
export const counted = (count: number, what: string): string => `${grouped(count)} ${what}${count === 1 ? '' : 's'}`;

/** What is missing is said, lest it be taken for what never was: `consequence` is what became of it here. */
export const prunedOf = (prunedRecords: number, consequence: string): string =>
  `${counted(prunedRecords, 'record')} of this time ${prunedRecords === 1 ? 'is' : 'are'} pruned: ${consequence}`;

/** What is said where something is chosen among records of which some are pruned. */
export const prunedAmong = (prunedRecords: number): string =>
  prunedOf(prunedRecords, 'what is asked for may have been among them.');

/** "a, b, c", and of a long row how many more there are. */
export const someOf = (names: readonly string[], max: number): string => {
  const more = names.length - max;
  return `${names.slice(0, max).join(', ')}${more > 0 ? ` and ${grouped(more)} more` : ''}`;
};

const SHORT_ID_CHARS = 13;

/** Ids as crictl shortens them; a digest loses its algorithm. */
export const shortId = (id: string): string => id.replace(/^sha256:/, '').slice(0, SHORT_ID_CHARS);
