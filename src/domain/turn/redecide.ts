/**
 * Deciding again what a journal says was decided: every input is given to the deciders, and the events that come out
 * are held against the records that followed it then (C13). Touches nothing; a crash on a user's node becomes a test.
 */
import { decide } from './decide.ts';
import { sameJson } from '../values/json.ts';
import type { Event, Input, InputType, Sequenced } from '../model/records.ts';
import { initialState, type NodeState } from '../model/state.ts';

const INPUT_TYPES: Readonly<Record<InputType, true>> = {
  'daemon.started': true,
  'daemon.stopped': true,
  'call.received': true,
  'call.detached': true,
  'effect.ended': true,
  'task.exited': true,
  'task.oomed': true,
  'shim.lost': true,
  'content.damaged': true,
  'journal.doubted': true,
  'disk.filled': true,
  'disk.freed': true,
  'content.collected': true,
  'logkeeper.started': true,
  'logkeeper.ended': true,
  'network.configured': true,
  'nri.plugin.registered': true,
  'nri.plugin.closed': true,
  'turn.failed': true,
};

const isInput = (record: Sequenced): record is Sequenced<Input> => record.type in INPUT_TYPES;

export interface Divergence {
  /** seq of the record that is different, missing or too many. */
  readonly seq: number;
  readonly recorded: Sequenced | null;
  readonly redecided: Sequenced<Event> | null;
}

export interface Redecided {
  readonly state: NodeState;
  readonly inputs: number;
  /** The first place where today's deciders say something else; null when they never do. */
  readonly divergence: Divergence | null;
}

/** `records` begin with record 1 and are whole (not pruned); the journal's own records are passed over. */
export function redecide(records: Iterable<Sequenced>): Redecided {
  const state = initialState();
  let inputs = 0;
  let expected: readonly Sequenced<Event>[] = [];
  let next = 0;
  for (const record of records) {
    if (isInput(record)) {
      const missing = expected[next];
      if (missing !== undefined)
        return { state, inputs, divergence: { seq: missing.seq, recorded: null, redecided: missing } };
      expected = decide(state, record);
      next = 0;
      inputs += 1;
      continue;
    }
    const event = expected[next];
    if (event === undefined || !isSame(record, event))
      return { state, inputs, divergence: { seq: record.seq, recorded: record, redecided: event ?? null } };
    next += 1;
  }
  return { state, inputs, divergence: null };
}

const isSame = (recorded: Sequenced, event: Sequenced<Event>): boolean =>
  recorded.type === event.type &&
  recorded.seq === event.seq &&
  recorded.stream === event.stream &&
  recorded.cause === event.cause &&
  recorded.call === event.call &&
  // A record's body went through JSON, which drops what is undefined; sameJson does so too.
  sameJson(recorded.body, event.body);
