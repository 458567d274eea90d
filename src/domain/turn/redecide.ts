/**
 * Deciding again what a journal says was decided: every input is given to the deciders, and what they decide stands
 * beside the records that followed it then (C13). Where they differ, what was recorded goes on: the next input finds the
 * state that it found then. Touches nothing; a crash on a user's node becomes a test.
 */
import { sameJson } from '../values/json.ts';
import type { Event, Input, InputType, Sequenced } from '../model/records.ts';
import { copyState, initialState, type NodeState, replaceState } from '../model/state.ts';
import { decide as decideInput } from './decide.ts';
import { evolve } from './evolve.ts';

const INPUTS: Readonly<Record<InputType, true>> = {
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

/** Types of the records that something is decided on. */
export const INPUT_TYPES: readonly string[] = Object.keys(INPUTS);

export const isInput = (record: Sequenced): record is Sequenced<Input> => Object.hasOwn(INPUTS, record.type);

/** One decision, as it was recorded and as it is made today. */
export interface Redecision {
  readonly input: Sequenced<Input>;
  /** What followed from it, as recorded. */
  readonly recorded: readonly Sequenced<Event>[];
  /** What follows from it today; null: deciding threw. */
  readonly decided: readonly Sequenced<Event>[] | null;
  /** What deciding threw. */
  readonly thrown: unknown;
  readonly isSame: boolean;
  /** After what was recorded. Changes with the next decision: copyState keeps it. */
  readonly state: NodeState;
}

export interface RedecideOptions {
  /** What the records before the first folded to; it is changed. Absent: there were none. */
  readonly start?: NodeState;
  /** Hears of each input before it is decided: the place to stop in a debugger. */
  readonly before?: (input: Sequenced<Input>, state: NodeState) => void;
  readonly decide?: typeof decideInput;
}

/**
 * `records` are in order and whole from the first on (nothing pruned among them), without the journal's own. Records in
 * front of the first input belong to a turn whose beginning is not there: they are only folded.
 */
export function* redecide(records: Iterable<Sequenced>, options: RedecideOptions = {}): Generator<Redecision> {
  const { start = initialState(), before, decide = decideInput } = options;
  const state = start;
  /** Of the records alone. */
  const truth = copyState(start);
  let input: Sequenced<Input> | null = null;
  let recorded: Sequenced<Event>[] = [];

  function decideAgain(on: Sequenced<Input>): Redecision {
    before?.(on, state);
    let decided: Redecision['decided'] = null;
    let thrown: unknown;
    try {
      decided = decide(state, on);
    } catch (error) {
      thrown = error;
    }
    for (const record of [on, ...recorded]) evolve(truth, record);
    const isSame = decided !== null && areSame(recorded, decided);
    if (!isSame) replaceState(state, truth);
    return { input: on, recorded, decided, thrown, isSame, state };
  }

  for (const record of records) {
    if (isInput(record)) {
      if (input !== null) yield decideAgain(input);
      input = record;
      recorded = [];
    } else if (input === null) for (const folded of [state, truth]) evolve(folded, record);
    // What is no input was decided.
    else recorded.push(record);
  }
  if (input !== null) yield decideAgain(input);
}

const areSame = (recorded: readonly Sequenced[], decided: readonly Sequenced[]): boolean =>
  recorded.length === decided.length &&
  recorded.every((record, index) => {
    const other = decided[index];
    return other !== undefined && record.seq === other.seq && saysTheSame(record, other);
  });

/** But for their numbers. */
export const saysTheSame = (record: Sequenced, other: Sequenced): boolean =>
  record.type === other.type &&
  record.stream === other.stream &&
  record.cause === other.cause &&
  record.call === other.call &&
  // A record's body went through JSON, which drops what is undefined; sameJson does so too.
  sameJson(record.body, other.body);
