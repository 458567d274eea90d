/**
 * Reads the text of cgroup files. Numbers stay decimal text or become bigint: limits are near 2^63. Pure; a file that
 * is not as the kernel writes it gives undefined fields, never an exception.
 */
import type { PsiData, PsiStats } from '../../wire/cri/api.ts';

const UNLIMITED = 'max';
const NS_PER_US = 1000n;
const pressurePattern = /^avg10=(\d+\.\d+) avg60=(\d+\.\d+) avg300=(\d+\.\d+) total=(\d+)$/;

/** A number alone in its file; undefined for "max" (no limit) and anything else. */
export const parseNumber = (text: string): bigint | undefined => {
  const value = text.trimEnd();
  return value !== UNLIMITED && /^\d+$/.test(value) ? BigInt(value) : undefined;
};

/** Where the line that begins with `start` begins; -1 when there is none. */
const lineAt = (text: string, start: string): number => {
  if (text.startsWith(start)) return 0;
  const newlineAt = text.indexOf(`\n${start}`);
  return newlineAt < 0 ? -1 : newlineAt + 1;
};

/** The number behind `key` in a file of "key number" lines; undefined when there is no such line. */
export const numberOf = (text: string, key: string): bigint | undefined => {
  const at = lineAt(text, `${key} `);
  if (at < 0) return undefined;
  const end = text.indexOf('\n', at);
  return parseNumber(text.slice(at + key.length + 1, end < 0 ? text.length : end));
};

const parsePressureLine = (text: string, kind: string): PsiData | undefined => {
  const line = text.split('\n').find((each) => each.startsWith(`${kind} `));
  const fields = line === undefined ? null : pressurePattern.exec(line.slice(kind.length + 1));
  if (fields === null) return undefined;
  const [, avg10, avg60, avg300, total = '0'] = fields;
  return {
    // The kernel counts microseconds, CRI wants nanoseconds.
    Total: String(BigInt(total) * NS_PER_US),
    Avg10: Number(avg10),
    Avg60: Number(avg60),
    Avg300: Number(avg300),
  };
};

/** A *.pressure file (psi); undefined when the kernel keeps no such account. */
export const parsePressure = (text: string | undefined): PsiStats | undefined => {
  if (text === undefined) return undefined;
  const stats = { Full: parsePressureLine(text, 'full'), Some: parsePressureLine(text, 'some') };
  return stats.Full === undefined && stats.Some === undefined ? undefined : stats;
};
