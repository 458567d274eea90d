/** A decision in lines for people: what was decided on, what followed, in what it differs, what it changed, what led to it. */
import type { Difference } from '../../domain/turn/differences.ts';
import type { Input, Sequenced } from '../../domain/model/records.ts';
import { nameOf } from '../../domain/turn/after-a-throw.ts';
import { isInput } from '../../domain/turn/redecide.ts';
import type { Replayed } from '../../engine/replay.ts';
import { grouped, printable, utcTime } from '../format.ts';
import type { Change } from '../past/changes.ts';
import { aboutOf, valueOf } from './show.ts';
import type { Source } from './source.ts';

/** Lines for people: what a journal or a report of a crash quotes may hold anything, and comes from elsewhere. */
export const textOf = (lines: readonly string[]): string =>
  lines
    .flatMap((line) => line.split('\n'))
    .map((line) => `${printable(line)}\n`)
    .join('');

const recordLine = ({ seq, type, stream, body }: Sequenced): string =>
  printable(`${grouped(seq)}  ${type}  ${aboutOf(stream)}  ${valueOf(body)}`);

const differenceLine = ({ kind, seq, type, path, expected, actual }: Difference): string => {
  const where = `${grouped(seq)} ${type}${path === null ? '' : ` ${path}`}`;
  switch (kind) {
    case 'missing':
      return `MISSING TODAY: ${where}`;
    case 'extra':
      return printable(`EXTRA TODAY: ${where} ${valueOf(actual)}`);
    case 'different':
      return printable(`DIFFERS: ${where}: recorded ${valueOf(expected)}, today ${valueOf(actual)}`);
    case 'threw':
      return `THROWS TODAY: ${String(actual)}`;
    case 'request':
      return `ANOTHER REQUEST TODAY: ${where}`;
  }
};

export const decisionLines = ({ input, recorded, differences }: Replayed): string[] => [
  `${recordLine(input)}  at ${utcTime(input.atNs)}`,
  ...recorded.map((record) => `  ${recordLine(record)}`),
  ...differences.map((difference) => `  ${differenceLine(difference)}`),
];

/** Of an input that no decision was recorded for: what follows today. */
export const unrecordedLines = ({ input, decided, differences }: Replayed): string[] => [
  `${recordLine(input)}  at ${utcTime(input.atNs)}`,
  ...(decided === null
    ? differences.map((difference) => `  ${differenceLine(difference)}`)
    : ['  Today it is decided:', ...decided.map((record) => `    ${recordLine(record)}`)]),
];

/** `changes` null: the state before is not known. */
export const changeLines = (changes: readonly Change[] | null, { differences }: Replayed): string[] => {
  const changed = (changes ?? []).flatMap(({ what, stream, state, fields }) =>
    fields.length === 0
      ? [`${what}: ${aboutOf(stream)} ${state}`]
      : fields.map(({ field, before, after }) =>
          printable(`${what}: ${aboutOf(stream)} ${field}: ${valueOf(before ?? null)} -> ${valueOf(after ?? null)}`),
        ),
  );
  const unknown =
    changes === null ? ['The state before this decision is not kept.'] : ['It changed nothing that shows.'];
  return [...(changed.length > 0 ? changed : unknown), ...differences.map(differenceLine)];
};

/** A chain of causes has no more links that matter. */
const LINKS_MAX = 50;

/** From the decision back to what came from outside: the request that it is the outcome of, and what that was decided on. */
export const causeLines = (source: Source, input: Sequenced<Input>): string[] => {
  const lines = [`${recordLine(input)}  (${nameOf(input)})`];
  let from: Sequenced | null = input;
  for (let links = 0; from?.cause != null && links < LINKS_MAX; links += 1) {
    const { cause } = from;
    from = source.record(cause);
    if (from === null) lines.push(`${grouped(cause)} is pruned, or cannot be read`);
    else lines.push(`because of ${recordLine(from)}${isInput(from) ? `  (${nameOf(from)})` : ''}`);
  }
  const call = input.call === null || from?.seq === input.call ? null : source.record(input.call);
  if (call !== null) lines.push(`on behalf of ${recordLine(call)}`);
  return lines;
};
