/** Which entries of a history are shown, beside those about chosen objects: methods, callers, outcomes, words. Pure. */
import type { CallEntry, Entry } from './entries.ts';
import { knownAs } from './entries.ts';
import { hasPart } from './plugins.ts';
import { type CallMethod, type RecordType, rpcOf } from '../../domain/model/records.ts';

export interface Filter {
  /** In any case; empty for all. */
  readonly methods: readonly string[];
  readonly failedOnly: boolean;
  /** What the kernel said of the caller; null for anybody. An executable by its path or the end of it. */
  readonly callerUid: number | null;
  readonly executable: string | null;
  /** gRPC code; null for any. */
  readonly code: number | null;
  readonly execOnly: boolean;
  /** Somewhere in what was recorded, in any case; null for all. */
  readonly text: string | null;
  /** An NRI plugin that had a part in it, "NN-name" or its name; null for all. */
  readonly plugin: string | null;
}

const EXECS: ReadonlySet<string> = new Set<CallMethod>(['ExecSync', 'Exec', 'ExecSession']);

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

const uidOf = (entry: Entry): number | null => {
  switch (entry.kind) {
    case 'call':
      return entry.received?.event.body.caller?.uid ?? null;
    case 'read':
      return entry.row.callerUid;
    case 'event':
    case 'pruned':
      return null;
  }
};

const isBy = (wanted: string, entry: Entry): boolean => {
  const caller = entry.kind === 'call' ? entry.received?.event.body.caller : null;
  if (caller === undefined || caller === null) return false;
  const executable = caller.executable.replace(/ \(deleted\)$/, '');
  return caller.program === wanted || executable === wanted || executable.endsWith(`/${wanted}`);
};

const codeOf = (entry: Entry): number | null => {
  switch (entry.kind) {
    case 'call':
      return entry.completed?.event.body.code ?? null;
    case 'read':
      return entry.row.code;
    case 'event':
    case 'pruned':
      return null;
  }
};

/** As it stands within a text in JSON. */
export const jsonText = (text: string): string => JSON.stringify(text).slice(1, -1);

/** Between the words of a command, which people read, and look for, with spaces. */
const BETWEEN_WORDS = '","';

/** A body is JSON: what is looked for may stand there as it was typed, or as it reads when it is shown. */
const isIn = (body: string, wanted: string): boolean => {
  const text = body.toLowerCase();
  if (text.includes(wanted.toLowerCase())) return true;
  const read = wanted.includes(' ') ? text.replaceAll(BETWEEN_WORDS, ' ') : text;
  return read.includes(jsonText(wanted).toLowerCase());
};

const hasText = (wanted: string, entry: Entry): boolean => {
  const has = (body: string | undefined): boolean => body !== undefined && isIn(body, wanted);
  switch (entry.kind) {
    case 'call':
      return [entry.received?.record, ...entry.events, entry.completed?.record].some((record) => has(record?.body));
    case 'read':
      return entry.row.subject.toLowerCase().includes(wanted.toLowerCase());
    case 'event':
      return has(entry.record.body);
    case 'pruned':
      return false;
  }
};

const isWithPlugin = (plugin: string, entry: Entry): boolean => {
  switch (entry.kind) {
    case 'call': {
      const { received, events } = entry;
      return (
        (received !== null && hasPart(plugin, received.record)) || events.some((record) => hasPart(plugin, record))
      );
    }
    case 'event':
      return hasPart(plugin, entry.record);
    case 'read':
    case 'pruned':
      return false;
  }
};

/** Beneath a call, only that in which the plugin had a part. */
export const onlyWith = (plugin: string, entry: Entry): Entry =>
  entry.kind === 'call' ? { ...entry, events: entry.events.filter((record) => hasPart(plugin, record)) } : entry;

const isExec = (entry: Entry): boolean => entry.kind === 'call' && EXECS.has(methodOfEntry(entry) ?? '');

/** Nothing is left out. */
export const passesAll = (filter: Filter): boolean => {
  const { methods, failedOnly, callerUid, executable, code, execOnly, text, plugin } = filter;
  const isAny = (callerUid ?? executable ?? code ?? text ?? plugin) === null;
  return methods.length === 0 && !failedOnly && !execOnly && isAny;
};

export const passes = (filter: Filter, entry: Entry): boolean => {
  const { methods, failedOnly, callerUid, executable, code, execOnly, text, plugin } = filter;
  return (
    (methods.length === 0 || isMethod(methods, entry)) &&
    (!failedOnly || hasFailed(entry)) &&
    (!execOnly || isExec(entry)) &&
    (callerUid === null || uidOf(entry) === callerUid) &&
    (executable === null || isBy(executable, entry)) &&
    (code === null || codeOf(entry) === code) &&
    (text === null || hasText(text, entry)) &&
    (plugin === null || isWithPlugin(plugin, entry))
  );
};
