/**
 * Reading what plugins sent: every text, number and list has its bounds, and what is outside of them is refused in words
 * that name the field as the protocol does. Must not know any message itself.
 */
import type { Int64 } from '../../../domain/model/cri.ts';
import { isAbsolute } from '../../../domain/oci/paths.ts';
import { refuse, shown } from '../../../domain/oci/refuse.ts';
import { nameIn } from './enums.ts';

/** Longer arguments and variables no program can be given (MAX_ARG_STRLEN). */
const TEXT_MAX = 131_071;
/** PATH_MAX, without the NUL. */
const PATH_MAX = 4_095;
const LIST_MAX = 4_096;

export const MAX_INT64 = 2n ** 63n - 1n;
export const MAX_UINT64 = 2n ** 64n - 1n;
export const MAX_UINT32 = 2n ** 32n - 1n;

/** What is shown and recorded of a plugin's own words. */
const WORDS_MAX = 1_000;

/** A plugin's own words, as many as a record holds. */
export const ownWords = (text: string): string => text.slice(0, WORDS_MAX).toWellFormed();

/** @throws {FailureError} PluginInvalid; `problem` goes on from "which" */
export const refuseAnswer = (field: string, problem: string): never =>
  refuse('PluginInvalid', `${field}, which ${problem}`);

/** The fields that are set; undefined when none is. Every field has to be named, so that none is forgotten. */
export function present<T extends object>(
  fields: {
    readonly [K in keyof Required<T>]: T[K] | undefined;
  },
): T | undefined {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as T);
}

export function text(field: string, value: string, max = TEXT_MAX): string {
  if (value.length > max) return refuseAnswer(field, `has ${value.length} characters: it must have at most ${max}`);
  if (value.includes('\0')) return refuseAnswer(field, `holds a NUL byte in ${shown(value)}: nothing can be given one`);
  return value;
}

/** Absent when it is empty. */
export const optionalText = (field: string, value: string, max?: number): string | undefined =>
  value === '' ? undefined : text(field, value, max);

export function absolutePath(field: string, value: string): string {
  if (!isAbsolute(value)) return refuseAnswer(field, `is ${shown(value)}: it must be an absolute path`);
  return text(field, value, PATH_MAX);
}

/** Of a file that a name without directories stands for, in a directory that it must not leave. */
export function fileName(field: string, value: string): string {
  if (value.includes('/') || value === '.' || value === '..')
    return refuseAnswer(field, `is ${shown(value)}: it must be a name without directories`);
  return text(field, value, PATH_MAX);
}

function bounded<T>(field: string, values: readonly T[], max = LIST_MAX): readonly T[] {
  return values.length > max
    ? refuseAnswer(field, `has ${values.length} entries: it must have at most ${max}`)
    : values;
}

/** Absent when it is empty. */
export const list = <W, D>(
  field: string,
  values: readonly W[],
  convert: (field: string, value: W) => D,
  max?: number,
): readonly D[] | undefined =>
  values.length === 0
    ? undefined
    : bounded(field, values, max).map((value, index) => convert(`${field}[${index}]`, value));

/** Absent when it is empty. */
export function map<W, D>(
  field: string,
  values: Readonly<Record<string, W>>,
  convert: (field: string, value: W, key: string) => D,
): Readonly<Record<string, D>> | undefined {
  const entries = bounded(field, Object.entries(values));
  if (entries.length === 0) return undefined;
  return Object.fromEntries(
    entries.map(([key, value]) => [text(`${field} key`, key), convert(`${field}[${shown(key)}]`, value, key)]),
  );
}

export const message = <W, D>(value: W | undefined, convert: (value: W) => D): D | undefined =>
  value === undefined ? undefined : convert(value);

export function whole(field: string, value: Int64, least: bigint, most: bigint): Int64 {
  const exact = BigInt(value);
  return exact < least || exact > most
    ? refuseAnswer(field, `is ${value}: it must be from ${least} to ${most}`)
    : String(exact);
}

/** One that JSON holds exactly. */
export const wholeNumber = (field: string, value: Int64, least: bigint, most: bigint): number =>
  Number(whole(field, value, least, most < MAX_SAFE ? most : MAX_SAFE));

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** The name of an enum's number. */
export const named = (field: string, names: Readonly<Record<string, number>>, value: number): string =>
  nameIn(names, value) ?? refuseAnswer(field, `is ${value}: the protocol has no such value`);
