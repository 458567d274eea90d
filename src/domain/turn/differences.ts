/**
 * In what a decision differs from what was recorded, as data: records that are missing today, that are more than there
 * were, and in which place one says something else. Pure; decides nothing.
 */
import { differingPaths } from '../values/json-paths.ts';
import type { Sequenced } from '../model/records.ts';
import { nameOf } from './after-a-throw.ts';
import { type Redecision, saysTheSame } from './redecide.ts';

/**
 * missing: it was recorded, and is not decided any more. extra: it is decided, and was not recorded. different: both, but
 * not the same. threw: nothing is decided, since that throws. request: the request of an effect is another one.
 */
export type DifferenceKind = 'missing' | 'extra' | 'different' | 'threw' | 'request';

export interface Difference {
  readonly kind: DifferenceKind;
  /** Of the record that differs; of one that was not recorded, where it would have been. */
  readonly seq: number;
  /** What the record is about, and its type. */
  readonly stream: string;
  readonly type: string;
  /** What was decided on, in words: "a call of StopContainer". */
  readonly decider: string;
  /** What was recorded there; null: nothing. */
  readonly expected: unknown;
  /** What is decided today; null: nothing. */
  readonly actual: unknown;
  /** Where in the record the two differ: body.effects[0].kind; null: as a whole. */
  readonly path: string | null;
  /** The record that was decided on. */
  readonly cause: { readonly seq: number; readonly type: string; readonly stream: string };
}

/** More places of one record say nothing more. */
const PATHS_MAX = 20;

export function differencesOf({ input, recorded, decided, thrown, isSame }: Redecision): Difference[] {
  if (isSame) return [];
  const about = aboutDecision(input);
  if (decided === null) {
    const first = recorded[0] ?? input;
    const { seq, stream, type } = first;
    const expected = recorded.length === 0 ? null : said(first);
    return [{ kind: 'threw', seq, stream, type, ...about, expected, actual: thrownText(thrown), path: null }];
  }
  const differences: Difference[] = [];
  let before = input.seq;
  for (const { recorded: was, decided: is } of aligned(recorded, decided)) {
    if (was !== null) before = was.seq;
    const seq = was?.seq ?? before + 1;
    if (was !== null && is !== null) differences.push(...placesIn(was, is, about));
    else if (was !== null)
      differences.push({
        kind: 'missing',
        seq,
        ...nameOfRecord(was),
        ...about,
        expected: said(was),
        actual: null,
        path: null,
      });
    else if (is !== null)
      differences.push({
        kind: 'extra',
        seq,
        ...nameOfRecord(is),
        ...about,
        expected: null,
        actual: said(is),
        path: null,
      });
  }
  return differences;
}

/** Whose decision it is. */
export const aboutDecision = (input: Redecision['input']): Pick<Difference, 'decider' | 'cause'> => ({
  decider: nameOf(input),
  cause: { seq: input.seq, ...nameOfRecord(input) },
});

const nameOfRecord = ({ stream, type }: Sequenced): Pick<Difference, 'stream' | 'type'> => ({ stream, type });

const said = ({ type, stream, call, body }: Sequenced): unknown => ({ type, stream, call, body });

const thrownText = (thrown: unknown): string =>
  thrown instanceof Error ? (thrown.stack ?? `${thrown.name}: ${thrown.message}`) : String(thrown);

function placesIn(was: Sequenced, is: Sequenced, about: Pick<Difference, 'decider' | 'cause'>): Difference[] {
  const differences: Difference[] = [];
  for (const { path, before, after } of differingPaths(compared(was), compared(is))) {
    if (differences.length === PATHS_MAX) break;
    const [expected, actual] = [before ?? null, after ?? null];
    differences.push({ kind: 'different', seq: was.seq, ...nameOfRecord(was), ...about, expected, actual, path });
  }
  return differences;
}

const compared = ({ type, stream, cause, call, body }: Sequenced): unknown => ({ type, stream, cause, call, body });

interface Pair {
  readonly recorded: Sequenced | null;
  readonly decided: Sequenced | null;
}

/** More than this is compared place by place. */
const CELLS_MAX = 250_000;
const SAME = 3;
const ALIKE = 1;

/**
 * Which record stands beside which: those that say the same, and between them those of one type and stream; so that one
 * record too many does not make all that follow it different.
 */
function aligned(recorded: readonly Sequenced[], decided: readonly Sequenced[]): Pair[] {
  const pairs: Pair[] = [];
  const likeness = recorded.length * decided.length > CELLS_MAX ? null : likenesses(recorded, decided);
  let [r, d] = [0, 0];
  while (r < recorded.length || d < decided.length) {
    const [was, is] = [recorded[r] ?? null, decided[d] ?? null];
    const step = stepAt(likeness, was, is, r, d);
    pairs.push({ recorded: step === 'extra' ? null : was, decided: step === 'missing' ? null : is });
    if (step !== 'extra') r += 1;
    if (step !== 'missing') d += 1;
  }
  return pairs;
}

type Step = 'both' | 'missing' | 'extra';

function stepAt(
  likeness: readonly Uint32Array[] | null,
  was: Sequenced | null,
  is: Sequenced | null,
  r: number,
  d: number,
): Step {
  if (is === null) return 'missing';
  if (was === null) return 'extra';
  if (likeness === null) return 'both';
  const best = at(likeness, r, d);
  const alike = likenessOf(was, is);
  if (alike > 0 && best === alike + at(likeness, r + 1, d + 1)) return 'both';
  return best === at(likeness, r + 1, d) ? 'missing' : 'extra';
}

const at = (likeness: readonly Uint32Array[], r: number, d: number): number => likeness[r]?.[d] ?? 0;

/** [r][d]: how much the records from r on can be alike to the decided ones from d on. */
function likenesses(recorded: readonly Sequenced[], decided: readonly Sequenced[]): Uint32Array[] {
  const rows = Array.from({ length: recorded.length + 1 }, () => new Uint32Array(decided.length + 1));
  for (const [r, was] of [...recorded.entries()].toReversed()) {
    const row = rows[r];
    for (const [d, is] of [...decided.entries()].toReversed()) {
      const alike = likenessOf(was, is);
      const together = alike === 0 ? 0 : alike + at(rows, r + 1, d + 1);
      if (row !== undefined) row[d] = Math.max(together, at(rows, r + 1, d), at(rows, r, d + 1));
    }
  }
  return rows;
}

const likenessOf = (was: Sequenced, is: Sequenced): number => {
  if (was.type !== is.type || was.stream !== is.stream) return 0;
  return saysTheSame(was, is) ? SAME : ALIKE;
};
