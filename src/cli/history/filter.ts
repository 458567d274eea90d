/** Which entries of a history are shown, beside those about chosen objects: methods and failures. Pure. */
import type { CallEntry, Entry } from './entries.ts';
import { knownAs } from './entries.ts';
import { type RecordType, rpcOf } from '../../domain/model/records.ts';

export interface Filter {
  /** In any case; empty for all. */
  readonly methods: readonly string[];
  readonly failedOnly: boolean;
}

/** null when only the end of a call that scribe does not offer, or refused at once, is left. */
export const methodOfEntry = ({ received, completed }: CallEntry): string | null => {
  if (received !== null) return rpcOf(received.event.body.request);
  return completed === null ? null : completed.event.body.method;
};

const isMethod = (wanted: readonly string[], entry: Entry): boolean => {
  const isWanted = (name: string | null): boolean =>
    name !== null && wanted.some((one) => one.toLowerCase() === name.toLowerCase());
  switch (entry.kind) {
    case 'call':
      return isWanted(methodOfEntry(entry));
    case 'read':
      return isWanted(entry.row.method);
    case 'event':
    case 'pruned':
      return false;
  }
};

/** What is never meant to happen, whatever it says. */
const TROUBLES: ReadonlySet<string> = new Set<RecordType>([
  'container.lost',
  'sandbox.lost',
  'task.oomed',
  'content.damaged',
  'turn.failed',
  'journal.doubted',
  'disk.filled',
]);

const hasFailed = (entry: Entry): boolean => {
  switch (entry.kind) {
    case 'call': {
      const body = entry.completed?.event.body;
      return body !== undefined && (body.code !== 0 || (body.response?.exitCode ?? 0) !== 0);
    }
    case 'read':
      return entry.row.code !== 0;
    case 'event': {
      const { record, afterKill } = entry;
      if (afterKill === true) return true;
      if (TROUBLES.has(record.type)) return true;
      if (knownAs('daemon.started', record)?.event.body.crash) return true;
      return (knownAs('container.exited', record)?.event.body.exitStatus ?? 0) !== 0;
    }
    case 'pruned':
      return false;
  }
};

export const passes = ({ methods, failedOnly }: Filter, entry: Entry): boolean =>
  (methods.length === 0 || isMethod(methods, entry)) && (!failedOnly || hasFailed(entry));
