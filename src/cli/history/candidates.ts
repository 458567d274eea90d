/**
 * A history of what a filter lets through, without reading all the rest: SQLite looks which calls and events may pass (never
 * leaving one out), and only those are read and looked at as usual. They come in the order in which they began, as a scan
 * gives them. Where much passes that is slower than reading everything in order, which then goes on from there.
 */
import type { Entry } from './entries.ts';
import type { Filter } from './filter.ts';
import type { MarkedOptions } from './marked-entries.ts';
import { filterRules } from './plan.ts';
import { sortedOf, sortedOfThings } from './sorted.ts';

/** Looked at first: so many that a row which is near is shown at once. */
const WINDOW_MIN = 8_192;

export interface CandidateOptions {
  /** The newest first. */
  readonly isReversed?: boolean;
  readonly windowMin?: number;
}

/**
 * The entries of a range that a filter may let through, or null where only reading everything tells; whoever asks looks at
 * each entry by filter and selection itself.
 */
export const candidatesOf = (
  options: MarkedOptions,
  filter: Filter,
  { isReversed = false, windowMin = WINDOW_MIN }: CandidateOptions = {},
): AsyncGenerator<Entry> | null => {
  const order = { isReversed, windowMin };
  if (options.selection.streams() !== null) return sortedOfThings(options, order);
  const rules = filterRules(filter, options.withEvents);
  return rules === null ? null : sortedOf(options, rules, order);
};
