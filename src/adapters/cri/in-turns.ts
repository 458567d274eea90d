/**
 * Replies with a large entry for each of many objects, and that are new each time: encoded a few entries at a time, so that
 * other calls get their turn meanwhile (C17). What is encoded once per change is the business of lists.ts.
 */
import { setImmediate as otherTurns } from 'node:timers/promises';
import { entryBytes } from './lists.ts';

/** So long others wait for a turn of this. */
const TURN_MS = 10;

/** The reply whose entries, in field 1, are what `encode` gives of each item. */
export const encodedInTurns = async <T>(items: readonly T[], encode: (item: T) => Uint8Array): Promise<Uint8Array> => {
  const entries: Uint8Array[] = [];
  let overAtMs = performance.now() + TURN_MS;
  for (const item of items) {
    entries.push(entryBytes(encode(item)));
    if (performance.now() < overAtMs) continue;
    await otherTurns();
    overAtMs = performance.now() + TURN_MS;
  }
  return Buffer.concat(entries);
};
