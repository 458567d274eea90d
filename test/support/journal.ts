/** What a daemon has written down, read as any command would: beside the running daemon, or when it is gone. */
import { join } from 'node:path';
import { nodeFold } from '../../src/engine/node-fold.ts';
import type { BodyOf, Caller, CallRequest, EffectEnded } from '../../src/domain/model/records.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import type { ObservedTask } from '../../src/domain/model/tasks.ts';
import { foldState } from '../../src/journal/fold.ts';
import { openReader } from '../../src/journal/open.ts';
import type { JournalRecord, ReadQuery } from '../../src/journal/types.ts';
import type { Daemon } from './daemon.ts';

export const journalPath = ({ dirs }: Pick<Daemon, 'dirs'>): string => join(dirs.root, 'journal.db');

/** Records in order, with their bodies parsed. */
export const recordsOf = async (
  daemon: Pick<Daemon, 'dirs'>,
  query: ReadQuery = {},
): Promise<(Omit<JournalRecord, 'body'> & { readonly body: unknown })[]> => {
  const reader = openReader(journalPath(daemon));
  try {
    const records = await Array.fromAsync(reader.read(query));
    return records.map((record) => ({ ...record, body: JSON.parse(record.body) as unknown }));
  } finally {
    reader.close();
  }
};

export const headOf = (daemon: Pick<Daemon, 'dirs'>): number => {
  const reader = openReader(journalPath(daemon));
  try {
    return reader.head().seq;
  } finally {
    reader.close();
  }
};

export interface JournaledCall {
  readonly seq: number;
  readonly request: CallRequest;
  readonly caller: Caller | null;
  /** How it ended; null while there is no answer. */
  readonly completed: BodyOf<'call.completed'> | null;
  /** gRPC code; null while there is no answer. */
  readonly code: number | null;
  /** Types of the records made on the call's behalf, but its own two. */
  readonly effects: readonly string[];
}

/** The calls received after the record `afterSeq`, in order, with how they ended. */
export const callsAfter = async (daemon: Pick<Daemon, 'dirs'>, afterSeq: number): Promise<JournaledCall[]> => {
  const records = await recordsOf(daemon, { fromSeq: afterSeq + 1 });
  return records
    .filter(({ type }) => type === 'call.received')
    .map(({ seq, body }) => {
      const own = records.filter(({ call }) => call === seq);
      const completed = own.find(({ type }) => type === 'call.completed');
      return {
        seq,
        request: (body as { request: CallRequest }).request,
        caller: (body as BodyOf<'call.received'>).caller,
        completed: completed === undefined ? null : (completed.body as BodyOf<'call.completed'>),
        code: completed === undefined ? null : (completed.body as { code: number }).code,
        effects: own.map(({ type }) => type).filter((type) => type !== 'call.received' && type !== 'call.completed'),
      };
    });
};

/** The stores as the journal folds to them at this moment. */
export const stateOf = (daemon: Pick<Daemon, 'dirs'>): NodeState => foldState(journalPath(daemon), nodeFold).state;

/** What the shims have said of each container's task, when they were last asked. */
export const toldByShims = async (daemon: Pick<Daemon, 'dirs'>): Promise<ReadonlyMap<string, ObservedTask>> => {
  const outcomes = (await recordsOf(daemon, { types: ['effect.ended'] })).map(({ body }) => body as EffectEnded);
  const tasks = outcomes.flatMap((outcome) => (outcome.kind === 'ReconnectShim' ? (outcome.result?.tasks ?? []) : []));
  return new Map(tasks.map((task) => [task.containerId, task]));
};
