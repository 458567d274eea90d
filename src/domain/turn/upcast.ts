/**
 * Older versions of record bodies in today's form. A body is written once and read for ever: when the meaning of a type
 * changes, RECORD_VERSION goes up and the step from the version before is added here, pure and for good (C13).
 */
import { RECORD_VERSION } from '../model/records.ts';

type Upcast = (type: string, body: unknown) => unknown;

/** UPCASTS[n] makes a body of version n + 2 from one of version n + 1. Version 1 is the first. */
const UPCASTS: readonly Upcast[] = [];

/** A newer scribe wrote what this one does not know. */
export const isKnownVersion = (version: number): boolean => version <= RECORD_VERSION;

/** @param version  one that this scribe knows */
export function upcast(type: string, version: number, body: unknown): unknown {
  return UPCASTS.slice(version - 1).reduce((older, step) => step(type, older), body);
}
