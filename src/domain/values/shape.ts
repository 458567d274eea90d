/**
 * Reading data of unknown shape field by field: files that an admin or a vendor wrote, parsed already. Each reader gives
 * the value in its type or says through `bad` which field is wrong and what it must be. Must not know any file itself.
 */

import { isObject, type JsonObject } from './json.ts';

/** Reads one value; `name` says which field it is, for messages: "devices[2].name". */
export type Read<T> = (value: unknown, name: string) => T;

export interface Shapes {
  /** An object that has no other fields than these; a field that is null counts as not there. */
  readonly object: (value: unknown, name: string, fields: readonly string[]) => JsonObject;
  readonly list: <T>(value: unknown, name: string, item: Read<T>) => readonly T[];
  /** Text of that form; `what` goes on from "must be". Whole numbers are taken as text: YAML knows no better. */
  readonly text: (value: unknown, name: string, form: RegExp, what: string) => string;
  readonly whole: (value: unknown, name: string, least: number, most: number) => number;
  readonly flag: Read<boolean>;
}

/** Other keys are not shown: a mistake in a file may make a key of a secret. */
const PLAIN_KEY = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

/** `bad` must throw. */
export const shapes = (bad: (problem: string) => never): Shapes => ({
  object: (value, name, fields) => {
    if (!isObject(value)) return bad(`${name} must be an object`);
    const unknown = Object.keys(value).find((key) => !fields.includes(key));
    if (unknown !== undefined)
      bad(`${name} has a field ${PLAIN_KEY.test(unknown) ? `"${unknown}" ` : ''}that is not known`);
    return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
  },
  list: (value, name, item) =>
    Array.isArray(value) ? value.map((one, index) => item(one, `${name}[${index}]`)) : bad(`${name} must be a list`),
  text: (value, name, form, what) => {
    const text = Number.isSafeInteger(value) ? String(value) : value;
    return typeof text === 'string' && form.test(text) ? text : bad(`${name} must be ${what}`);
  },
  whole: (value, name, least, most) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most
      ? (value as number)
      : bad(`${name} must be a whole number from ${least} to ${most}`),
  flag: (value, name) => (typeof value === 'boolean' ? value : bad(`${name} must be true or false`)),
});
