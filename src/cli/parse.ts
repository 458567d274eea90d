/** Turns words of a command line into the values of a command's options, or into an error that says what to type. */
import { parseArgs } from 'node:util';
import { nearest } from '../config/nearest.ts';
import { type Command, misuse, type Option, type Options, type Values } from './command.ts';

/** Every command has it. */
export const HELP: Option = { short: 'h', about: 'Shows this.' };
const HELP_NAME = 'help';

export interface Parsed<O extends Options> {
  readonly help: boolean;
  readonly values: Values<O>;
  readonly operands: readonly string[];
}

/** No option begins with a digit: "-5m" is what somebody means by five minutes ago, or a number. */
const NEGATIVE = /^-\d/;

/** No option has a space or a line in its name: "-- Who looked inside." begins a query, with a comment. */
const COMMENT = /^--(?:\s|[^=\n]*\n)/;

/** What is given to a command, though it begins as options do. */
const isGiven = (word: string): boolean => NEGATIVE.test(word) || COMMENT.test(word);

const isOption = (word: string): boolean => word.length > 1 && word.startsWith('-') && !isGiven(word);

/** What other words are typed for, where a command has it: no slip leads from one to the other. */
const ALSO_CALLED: Readonly<Partial<Record<string, string>>> = { '--journal': 'root' };

const meantBy = (typed: string, names: readonly string[]): string | null => {
  const other = ALSO_CALLED[typed];
  if (other !== undefined && names.includes(other)) return other;
  return typed.startsWith('--') ? nearest(typed.slice(2), names) : null;
};

const unknownOption = (typed: string, options: Options): Error => {
  const meant = meantBy(typed, Object.keys(options));
  const hint = meant !== null ? `did you mean --${meant}?` : `there are --${Object.keys(options).join(', --')}.`;
  return misuse(`There is no option ${typed}; ${hint}`);
};

const checkOperands = (operands: readonly string[], wanted: Command['operands']): void => {
  const { name, count, countMin = count } = wanted ?? { name: '', count: 0 };
  const extra = operands[count];
  if (extra !== undefined) throw misuse(`"${extra}" is one word too many.`);
  if (operands.length >= countMin) return;
  const missing = name.split(' ').slice(operands.length, countMin).join(' ');
  throw misuse(`${missing} is missing${operands.length === 0 ? '' : ` after "${operands.join(' ')}"`}.`);
};

/**
 * Throws CliError with exit status 2 for anything that the command does not know.
 * @param hasHelp  whether --help is an option, as it is of every command
 */
export const parseWords = <O extends Options>(
  words: readonly string[],
  { options: own, operands: wanted }: Pick<Command<O>, 'options' | 'operands'>,
  hasHelp = true,
): Parsed<O> => {
  const options: Options = hasHelp ? { ...own, [HELP_NAME]: HELP } : own;
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value, short }]) => [
        name,
        {
          type: value === undefined ? ('boolean' as const) : ('string' as const),
          ...(short === undefined ? {} : { short }),
        },
      ]),
    ),
    strict: false,
    tokens: true,
  });
  const values: Record<string, string | string[] | boolean> = {};
  const operands: string[] = [];
  for (const [at, token] of tokens.entries()) {
    if (token.kind === 'positional') operands.push(token.value);
    if (token.kind !== 'option') continue;
    const word = words[token.index] ?? '';
    if (wanted !== undefined && isGiven(word)) {
      // It was taken for as many options as it has letters.
      if (tokens[at - 1]?.index !== token.index) operands.push(word);
      continue;
    }
    const { name, rawName, value, inlineValue } = token;
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (option === undefined) throw unknownOption(rawName, options);
    if (option.value === undefined) {
      if (value !== undefined) throw misuse(`${rawName} takes no value.`);
      values[name] = true;
      continue;
    }
    if (value === undefined || (inlineValue === false && isOption(value))) {
      throw misuse(`${rawName} needs a value: ${rawName} ${option.value}.`);
    }
    if (value === '') throw misuse(`The value of ${rawName} is empty.`);
    if (option.repeatable) values[name] = [...((values[name] as string[] | undefined) ?? []), value];
    else values[name] = value;
  }
  const help = values[HELP_NAME] === true;
  if (!help) checkOperands(operands, wanted);
  // Each value was made by the kind of its option above; only the compiler can't follow that.
  return { help, values: values as Values<O>, operands };
};
