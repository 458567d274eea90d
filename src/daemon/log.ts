/**
 * The daemon's log: a line of JSON on standard error for each message, for whoever collects logs; on a terminal a line
 * for people, with time, level and message first. Its messages may quote clients: nothing in them steers a terminal.
 */
import pino, { type Logger } from 'pino';
import { knownHeadOf, knownWordsOf } from '../domain/model/error-words.ts';

const LEVELS: Readonly<Record<number, string>> = pino.levels.labels;
const UNPRINTABLE = /\p{Cc}/gu;

const escaped = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);

const wordOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** 2026-11-21 02:47:12.345+01:00 WARN  the message key=value */
export const terminalLine = (json: string): string => {
  const { level, time, msg = '', ...fields } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const head = [momentOf(Number(time)), (LEVELS[Number(level)] ?? String(level)).toUpperCase().padEnd(5), String(msg)];
  const rest = Object.entries(fields).map(([key, value]) => `${key}=${wordOf(value)}`);
  return `${escaped([...head, ...rest].join(' '))}\n`;
};

/** Local time with its zone. */
const momentOf = (ms: number): string => {
  const minutes = -new Date(ms).getTimezoneOffset();
  const local = new Date(ms + minutes * 60_000).toISOString().slice(0, -1).replace('T', ' ');
  const two = (part: number): string => String(Math.floor(part)).padStart(2, '0');
  return `${local}${minutes < 0 ? '-' : '+'}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
};

/** For bugs, whose errors may quote what they stumbled on: what is known of one, in the place where the log has an error. */
export const loggable = (error: unknown): { readonly message: string; readonly stack: string } => ({
  message: knownHeadOf(error),
  stack: knownWordsOf(error),
});

/** No line has more of an exception, whoever logs it; what is none was worded for the log. */
export const SERIALIZERS = {
  error: (error: unknown): unknown => (error instanceof Error ? loggable(error) : error),
} as const;

export const createLog = (level: string): Logger =>
  pino(
    { level, base: null, serializers: SERIALIZERS },
    process.stderr.isTTY
      ? { write: (json: string) => void process.stderr.write(terminalLine(json)) }
      : pino.destination({ dest: 2, sync: false }),
  );
