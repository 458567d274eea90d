/**
 * Older versions of record bodies in today's form. A body is written once and read for ever: when the meaning of a type
 * changes, RECORD_VERSION goes up and the step from the version before is added here, pure and for good (C13).
 */
import { RECORD_VERSION } from '../model/records.ts';

type Upcast = (type: string, body: unknown) => unknown;

/** UPCASTS[n] makes a body of version n + 2 from one of version n + 1. Version 1 is the first. */
const UPCASTS: readonly Upcast[] = [];

/** null for a version that this scribe does not know: a newer one wrote it. */
export function upcast(type: string, version: number, body: unknown): unknown {
  if (version > RECORD_VERSION) return null;
  return UPCASTS.slice(version - 1).reduce((older, step) => step(type, older), body);
}
