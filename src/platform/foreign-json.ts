/**
 * JSON that others wrote (registries, plugins, shims, runtimes, clients), read by a zod schema. Mistakes in it are told
 * by field and place and never by quoting it, since there may be secrets in it. Knows no document itself.
 */
import type * as z from 'zod';
import { parseJson } from '../domain/values/parse-json.ts';

/** Other keys are not shown: a mistake in a document may make a key of a secret. */
const PLAIN_KEY = /^[A-Za-z0-9_.-]{1,64}$/;

const shownKey = (key: PropertyKey): string => (PLAIN_KEY.test(String(key)) ? String(key) : '…');

/** The first thing that is wrong: "ips.0.address: Invalid input: expected string, received number". */
export const problemOf = ({ issues: [issue] }: Pick<z.ZodError, 'issues'>): string => {
  if (issue === undefined) return 'is not as it must be';
  return issue.path.length === 0 ? issue.message : `${issue.path.map(shownKey).join('.')}: ${issue.message}`;
};

/** A schema of zod, or of zod/mini, which is smaller. */
interface Schema<T> {
  readonly safeParse: (
    value: unknown,
  ) => z.ZodSafeParseSuccess<T> | { success: false; error: Pick<z.ZodError, 'issues'> };
}

/** Throws an Error that says what is wrong, without saying of what: "is not JSON at line 3, column 5". */
export const parseAs = <T>(schema: Schema<T>, text: string): T => {
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new Error(problemOf(parsed.error));
};

/** null for what is no JSON, or another JSON than the schema's: for where it does not matter why. */
export const readAs = <T>(schema: Schema<T>, text: string): T | null => {
  try {
    const parsed = schema.safeParse(JSON.parse(text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
};
