/**
 * The filter box of the page: the options of `scribe history` as they are typed there, parsed by the same code. Dashes may
 * be left out, and what is no option is text to look for, unless it looks like a misspelt one.
 */
import { nearest } from '../../config/nearest.ts';
import { parseWords } from '../parse.ts';
import type { Filter } from '../history/filter.ts';
import { filterOf, filterOptions } from '../history/filter-options.ts';
import { misuse } from '../command.ts';
import { type ThingFilter, thingFilterOf, thingOptions } from '../things.ts';
import { parseRange, type Range, rangeOptions } from '../time-argument.ts';

export interface Chosen {
  readonly things: ThingFilter;
  readonly filter: Filter;
  readonly range: Range;
}

const { pod, container, image, namespace, label } = thingOptions;
const options = { pod, container, image, namespace, label, ...filterOptions, ...rangeOptions } as const;

const WORD = /"([^"]*)"|'([^']*)'|([^\s"']+)/g;
/** A word, with its quotes taken off: they may begin in it, as in a shell. */
const WORDS = new RegExp(`(?:${WORD.source})+`, 'g');

interface Word {
  readonly word: string;
  /** From its first letter on. */
  readonly isQuoted: boolean;
}

const wordsOf = (text: string): Word[] =>
  Array.from(text.matchAll(WORDS), ([word]) => ({
    word: word.replaceAll(
      WORD,
      (_, double?: string, single?: string, plain?: string) => double ?? single ?? plain ?? '',
    ),
    isQuoted: /^["']/.test(word),
  }));

const NAME = /^([a-z]+)(=.*)?$/is;

/**
 * "failed" and "pod=web" are options without their dashes; one that takes a value needs the "=" then, and by itself is text.
 * "failed=yes" has one too many, which is refused as what it is.
 */
const dashed = (word: string): string => {
  const [, name = '', value] = NAME.exec(word) ?? [];
  const option = Object.hasOwn(options, name) ? options[name as keyof typeof options] : null;
  if (option === null) return word;
  return 'value' in option && value === undefined ? word : `--${word}`;
};

/** "lable=app" or "Label=app", not in quotes, where "label=app" was meant. */
const refuseMisspelt = (word: string): void => {
  const [, name = '', value] = NAME.exec(word) ?? [];
  if (value === undefined || Object.hasOwn(options, name)) return;
  const meant = nearest(name, Object.keys(options));
  if (meant !== null)
    throw misuse(`There is no option --${name}; did you mean --${meant}? Text that has a "=" goes in quotes.`);
};

/** Words that follow an option are its value, whatever they are. */
const withDashes = (words: readonly Word[]): string[] => {
  const takesValue = (word: string | undefined): boolean => {
    const name = word?.startsWith('--') === true ? word.slice(2) : '';
    return Object.hasOwn(options, name) && 'value' in options[name as keyof typeof options];
  };
  return words.map(({ word, isQuoted }, index) => {
    if (takesValue(words[index - 1]?.word)) return word;
    if (!isQuoted) refuseMisspelt(word);
    return dashed(word);
  });
};

/** Throws CliError with what the command line would say. */
export const parseFilterWords = (text: string): Chosen => {
  const operands = { name: 'TEXT', count: Number.MAX_SAFE_INTEGER, countMin: 0 };
  const { values, operands: free } = parseWords(withDashes(wordsOf(text)), { options, operands }, false);
  if (free.length > 0 && values.text !== undefined)
    throw misuse(`"${free.join(' ')}" and --text: give one of them, in quotes where it has spaces.`);
  const searched = free.length === 0 ? {} : { text: free.join(' ') };
  const { since, until } = values;
  return {
    things: thingFilterOf(values),
    filter: filterOf({ ...values, ...searched }),
    range: parseRange({ since, until }),
  };
};
