/**
 * What the keys of the configuration file are made of: tables, keys with their defaults, and the forms that values have.
 * Must not know any key: those are in schema.ts.
 */
import * as z from 'zod';
import { globExpression } from '../domain/values/glob.ts';
import { DURATION_UNITS, parseDurationMs, parseFileMode, parseSizeBytes, SIZE_UNITS } from './units.ts';

/** A key that may be left out: `fallback` is written as it would stand in the file. */
export const key = <T extends z.ZodType>(
  form: T,
  fallback: z.input<T> & z.core.util.NoUndefined<z.input<T>>,
  about: string,
) => form.prefault(fallback).meta({ description: about });

/** A key that is off unless it is written; the documented file shows `example` in a comment. */
export const unset = <T extends z.ZodType>(form: T, example: z.input<T>, about: string) =>
  form.optional().meta({ description: about, examples: [example] });

export const table = <T extends z.core.$ZodLooseShape>(about: string, shape: T) =>
  z
    .strictObject(shape, { error: 'must be a table' })
    .prefault({} as never)
    .meta({ description: about });

type Parse = (text: string) => number | null;

/** Text that `parse` turns into a number from that of `least` to that of `most`. */
const parsed = (parse: Parse, what: string, least: string, most?: string) => {
  const min = parse(least) ?? 0;
  const max = most === undefined ? Number.POSITIVE_INFINITY : (parse(most) ?? 0);
  return z.string({ error: `must be ${what}` }).transform((text, context) => {
    const value = parse(text);
    if (value !== null && value >= min && value <= max) return value;
    const beyond = `${text} is ${value !== null && value > max ? `more than ${most}` : `less than ${least}`}`;
    context.addIssue({ code: 'custom', message: value === null ? `${JSON.stringify(text)} is not ${what}` : beyond });
    return z.NEVER;
  });
};

export const duration = (least: string) => {
  const what = `a duration in quotes like "24h" or "1h30m" (units: ${DURATION_UNITS})`;
  return parsed(parseDurationMs, what, least);
};

export const size = (least: string, most?: string) => {
  const what = `a size in quotes like "64MiB" (units: ${SIZE_UNITS})`;
  return parsed(parseSizeBytes, what, least, most);
};

export const fileMode = parsed(parseFileMode, 'a file mode in quotes like "0660"', '0000');

export const count = (min: number, max: number) => {
  const message = `must be a whole number from ${min} to ${max}`;
  return z.number({ error: message }).int({ error: message }).min(min, { error: message }).max(max, { error: message });
};

export const flag = z.boolean({ error: 'must be true or false' });

export const choice = <const T extends readonly string[]>(...values: T) =>
  z.enum(values, { error: `must be one of ${values.map((value) => JSON.stringify(value)).join(', ')}` });

export const text = z.string({ error: 'must be text in quotes' });
export const name = text.regex(
  /^[A-Za-z0-9][A-Za-z0-9_.-]*$/,
  'must start with a letter or digit and hold only those, "_", "." and "-"',
);
export const absolutePath = text.regex(/^\/[^\0]*$/, 'must be an absolute path');
export const pathOrEmpty = text.regex(/^(\/[^\0]*)?$/, 'must be an absolute path or empty');
export const paths = z.array(absolutePath, { error: 'must be a list of absolute paths' });

export const annotationGlobs = z.array(
  text.refine((pattern) => pattern !== '' && globExpression(pattern) !== null, {
    error: 'must be a pattern like "example.com/*" (*, ?, [a-z])',
  }),
  { error: 'must be a list of patterns' },
);
export const id = count(0, 4_294_967_294);

/** What TOML can hold, but for dates. */
type TomlData = string | number | boolean | readonly TomlData[] | { readonly [key: string]: TomlData };
export const tomlData: z.ZodType<TomlData, TomlData> = z.lazy(() =>
  z.union([z.string(), z.number(), z.boolean(), z.array(tomlData), z.record(z.string(), tomlData)], {
    error: 'must be text, a number, true, false, a list or a table',
  }),
);
