/**
 * The filter box of the page: the options of `scribe history` as they are typed there, parsed by the same code. Dashes may
 * be left out, and what is no option is text to look for.
 */
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

const wordsOf = (text: string): string[] =>
  Array.from(text.matchAll(WORDS), ([word]) =>
    word.replaceAll(WORD, (_, double?: string, single?: string, plain?: string) => double ?? single ?? plain ?? ''),
  );

const NAME = /^([a-z]+)(=.*)?$/s;

/** "failed" and "pod=web" are options without their dashes; one that takes a value needs the "=" then. */
const dashed = (word: string): string => {
  const [, name = '', value] = NAME.exec(word) ?? [];
  const option = Object.hasOwn(options, name) ? options[name as keyof typeof options] : null;
  if (option === null) return word;
  return 'value' in option === (value !== undefined) ? `--${word}` : word;
};

/** Words that follow an option are its value, whatever they are. */
const withDashes = (words: readonly string[]): string[] => {
  const takesValue = (word: string | undefined): boolean => {
    const name = word?.startsWith('--') === true ? word.slice(2) : '';
    return Object.hasOwn(options, name) && 'value' in options[name as keyof typeof options];
  };
  return words.map((word, index) => (takesValue(words[index - 1]) ? word : dashed(word)));
};

/** Throws CliError with what the command line would say. */
export const parseFilterWords = (text: string): Chosen => {
  const operands = { name: 'TEXT', count: Number.MAX_SAFE_INTEGER, countMin: 0 };
  const { help, values, operands: free } = parseWords(withDashes(wordsOf(text)), { options, operands });
  if (help) throw misuse('The filter takes the options of scribe history.');
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
