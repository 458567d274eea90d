/**
 * What is said of an error where the words of clients don't belong (C12): the log of an end, the crash file, reports of
 * crashes. Its name, its code and the frames of its stack always; its message only where it is known who worded it and what
 * of, since any other may quote what it stumbled on. Pure.
 */
import { FailureError, KnownError, messageOf } from './errors.ts';

const LEFT_OUT = '[message left out]';

/** Errors of the journal have no type that the domain may know. */
const OWN_NAMES: readonly string[] = ['JournalError', 'ObjectStuckError'];
const NAME = /^[\w$]{1,60}$/;
const FRAME = /^ {4}at /;
const CAUSES_MAX = 8;

/** As written in a program. Who picks a password has a digit or a sign in it; who names a property of scribe mostly not. */
const WORD = String.raw`[A-Za-z_$]{1,40}`;
const PATH = String.raw`(?:${WORD}|\(intermediate value\))(?:\.${WORD}|\[\.\.\.\]|\(\.\.\.\))*`;
const NOTHING = '(?:undefined|null)';
/** What V8 says of mistakes in a program, where no value is in it but a word or a number. */
const OF_V8 = [
  String.raw`Cannot (?:read|set) properties of ${NOTHING}(?: \((?:reading|setting) '(?:${WORD}|\d{1,4}|Symbol\(Symbol\.${WORD}\))'\))?`,
  `${PATH} is not (?:a function|iterable|a constructor|defined)(?: or its return value is not iterable)?`,
  String.raw`(?:undefined|object null) is not iterable \(cannot read property Symbol\(Symbol\.iterator\)\)`,
  String.raw`Cannot destructure property '${WORD}' of '${PATH}' as it is ${NOTHING}\.`,
  `Cannot access '${WORD}' before initialization`,
  'Cannot convert undefined or null to object',
  'Cannot mix BigInt and other types, use explicit conversions',
  'Cannot convert a BigInt value to a number',
  'Do not know how to serialize a BigInt',
  String.raw`Assignment to constant variable\.`,
  'Reduce of empty array with no initial value',
  'Maximum call stack size exceeded',
  'Invalid (?:array|string|typed array) length(?:: [0-9]+)?',
  'Invalid time value',
  'Array buffer allocation failed',
].map((template) => new RegExp(`^${template}$`));

const fieldOf = (error: Error, key: 'code' | 'syscall' | 'errno'): unknown =>
  (error as Error & Readonly<Record<string, unknown>>)[key];

/** `ENOENT`, `SQLITE_FULL`, `ERR_INVALID_ARG_TYPE`, or a word of an error of scribe; null: it has none. */
const codeOf = (error: Error): string | null => {
  const code = fieldOf(error, 'code');
  return typeof code === 'string' && NAME.test(code) ? code : null;
};

const isOfSystem = (error: Error): boolean =>
  typeof fieldOf(error, 'errno') === 'number' &&
  typeof fieldOf(error, 'syscall') === 'string' &&
  /^E[A-Z0-9]+$/.test(codeOf(error) ?? '');

const isKnown = (error: Error): boolean =>
  error instanceof FailureError ||
  error instanceof KnownError ||
  OWN_NAMES.includes(error.name) ||
  isOfSystem(error) ||
  codeOf(error)?.startsWith('SQLITE_') === true ||
  OF_V8.some((template) => template.test(error.message));

const nameOf = ({ name }: Error): string => (NAME.test(name) ? name : 'Error');

/** What stands in for its message. */
export const knownMessageOf = (error: unknown): string =>
  error instanceof Error && isKnown(error) ? error.message : LEFT_OUT;

const IN_PROGRAMS = [TypeError, SyntaxError, RangeError, URIError];

/**
 * What a failure says that nobody meant to be one. Who throws a plain Error words it himself, for this; but JSON.parse
 * quotes what it could not read, and others what they were given, in errors of the types that stand for mistakes in a program.
 */
export const failureWordsOf = (error: unknown): string =>
  IN_PROGRAMS.some((type) => error instanceof type) ? knownHeadOf(error) : messageOf(error);

/** `TypeError: Cannot read properties of undefined (reading 'app')`, `SqliteError [SQLITE_FULL]: …`: a line, of what is known. */
export const knownHeadOf = (error: unknown): string => {
  if (!(error instanceof Error)) return `${typeof error}: ${LEFT_OUT}`;
  const code = codeOf(error);
  return `${nameOf(error)}${code === null ? '' : ` [${code}]`}: ${knownMessageOf(error)}`;
};

/** Where it came from: what its message has that looks like a frame is none. */
const framesOf = ({ message, stack = '' }: Error): readonly string[] => {
  const begin = stack.indexOf(message);
  const lines = stack.slice(begin < 0 ? 0 : begin + message.length).split('\n');
  const last = lines.findLastIndex((line) => !FRAME.test(line));
  return lines.slice(last + 1);
};

/** Head and frames of it and of all that led to it, as lines: the reason is often the innermost. */
export const knownWordsOf = (error: unknown): string => {
  const parts: string[] = [];
  for (let of = error; of !== undefined && parts.length < CAUSES_MAX; of = of instanceof Error ? of.cause : undefined)
    parts.push([knownHeadOf(of), ...(of instanceof Error ? framesOf(of) : [])].join('\n'));
  return parts.join('\nCaused by: ');
};
