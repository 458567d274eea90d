/** Replays one journal from its beginning, or from behind what was pruned, and counts. Keeps nothing of it and prints nothing. */
import { hash } from 'node:crypto';
import type { Difference } from '../../domain/turn/differences.ts';
import { type Replayed, replay, type ReplayOptions } from '../../engine/replay.ts';
import { writerOf } from '../../engine/newer.ts';
import type { Source, Unreadable } from './source.ts';

export interface Tally {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** Made again. */
  readonly decisions: number;
  /** So many the journal has. */
  readonly journaled: number;
  /** Records that were decided. */
  readonly events: number;
  /** Requests of effects that were compared. */
  readonly requests: number;
  /** Decisions that differ, each in one place or more. */
  readonly differing: number;
  readonly differences: number;
  /** Decisions in front of where replaying can begin. */
  readonly unchecked: number;
  /** endsAt: nothing behind it was decided, and this is the last record in front of it. */
  readonly unreadable: readonly { readonly seq: number; readonly why: string; readonly endsAt?: number }[];
}

export interface Watcher {
  readonly difference: (difference: Difference) => Promise<void>;
  /** Of each decision; the state in it changes with the next. */
  readonly progress: (replayed: Replayed) => void;
}

const digestOf = (text: string): string => hash('sha256', text);

/** The decisions of a journal, one after the other. */
export const decisionsOf = (
  { records, start, headSeq }: Source,
  { toSeq = headSeq, unreadable = () => undefined, ...options }: DecisionsOptions = {},
): Generator<Replayed> => {
  const state = start.state();
  const writer = writerOf(state);
  return replay(records(start.seq + 1, toSeq, { unreadable, writer }), { start: state, digestOf, ...options });
};

interface DecisionsOptions extends Pick<ReplayOptions, 'before'> {
  readonly toSeq?: number;
  readonly unreadable?: Unreadable;
}

export const tallyOf = async (source: Source, toSeq: number, watcher: Watcher): Promise<Tally> => {
  const counts = { decisions: 0, events: 0, requests: 0, differing: 0, differences: 0 };
  const unreadable: Tally['unreadable'][number][] = [];
  let last = toSeq;
  const note: Unreadable = (seq, why, endsAt) => {
    unreadable.push(endsAt === undefined ? { seq, why } : { seq, why, endsAt });
    if (endsAt !== undefined) last = Math.min(last, endsAt);
  };
  for (const replayed of decisionsOf(source, { toSeq, unreadable: note })) {
    const { differences, recorded, requestsChecked } = replayed;
    counts.decisions += 1;
    counts.events += recorded.length;
    counts.requests += requestsChecked;
    counts.differences += differences.length;
    if (differences.length > 0) counts.differing += 1;
    for (const difference of differences) await watcher.difference(difference);
    watcher.progress(replayed);
  }
  const fromSeq = source.start.seq + 1;
  const unchecked = source.journaled(1, Math.min(source.start.seq, toSeq));
  return { fromSeq, toSeq: last, ...counts, journaled: source.journaled(fromSeq, last), unchecked, unreadable };
};
