/** What several of these programs read from their command lines. */
import { statSync } from 'node:fs';
import { resolve } from 'node:path';

/** Those of `known` that the list names, in their order. Throws one sentence for one that is not known. */
export const namedIn = <Name extends string>(option: string, list: string, known: readonly Name[]): readonly Name[] => {
  const wanted = list.split(',');
  const unknown = wanted.filter((name) => !known.some((one) => one === name));
  if (unknown.length > 0) throw new Error(`--${option} ${unknown.join(',')}: there are ${known.join(', ')}`);
  return known.filter((one) => wanted.includes(one));
};

/** A number above 0. Throws one sentence for one that is none, or that `isAllowed` does not take. */
export const positive = (name: string, text: string, isAllowed: (value: number) => boolean): number => {
  const value = Number(text);
  if (!isAllowed(value) || value <= 0) throw new Error(`--${name} ${text}: it takes a number above 0`);
  return value;
};

/** The one file that is named. Throws one sentence where none is, or more, or what is named is no file. */
export const journalIn = (positionals: readonly string[]): string => {
  const [named, extra] = positionals;
  if (named === undefined || extra !== undefined) throw new Error('it takes one JOURNAL');
  if (statSync(named, { throwIfNoEntry: false })?.isFile() !== true) throw new Error(`${named} is no file`);
  return resolve(named);
};

/** What `read` makes of the command line; what it throws is told as the sentence that it is, and ends the program. */
export const optionsOrEnd = <Options>(program: string, read: () => Options): Options => {
  try {
    return read();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    console.error(`node ${program} --help says what there is.`);
    process.exit(2);
  }
};
