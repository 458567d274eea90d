/**
 * Given what has happened, when something happens, then this follows: how the domain is specified. A story is told to
 * decide() alone, which is pure, so nothing here waits, and nothing is left out of what follows. What can happen is in
 * happenings.ts.
 */
import assert from 'node:assert/strict';
import type { Event, Input, Sequenced } from '../../src/domain/model/records.ts';
import { initialState, type NodeState } from '../../src/domain/model/state.ts';
import { decide } from '../../src/domain/turn/decide.ts';
import { nodeStarts } from './happenings.ts';

/** Tells one input after the other; each sees what the ones before have led to. */
export type Happening = (tell: (input: Told) => void, state: NodeState) => void;
export type Told = Input & Pick<Sequenced, 'stream' | 'call'> & { readonly atNs?: bigint };

/** All that follows, in order; what is left out must be nothing. */
interface Follows {
  readonly records?: readonly string[];
  /** Kinds of effects; of timers, what they are for. */
  readonly asks?: readonly string[];
  /** The calls that are answered, each with OK or the reason of its failure. */
  readonly answers?: readonly string[];
}

const TURN_NS = 1_000_000n;

/** A node that serves, and has a pod network, on which this has happened. */
export function given(...before: readonly Happening[]) {
  const state = initialState();
  const events: Sequenced<Event>[] = [];
  let [seq, nowNs] = [0, 1_800_000_000_000_000_000n];
  const tell = ({ atNs = nowNs + TURN_NS, ...input }: Told): void => {
    nowNs = atNs;
    const call = input.type === 'call.received' ? seq + 1 : input.call;
    const decided = decide(state, { ...input, seq: seq + 1, atNs, monoNs: atNs, cause: null, call });
    events.push(...decided);
    seq += 1 + decided.length;
  };
  for (const happening of [nodeStarts(), ...before]) happening(tell, state);
  return {
    state,
    when(...happenings: readonly Happening[]) {
      const first = events.length;
      for (const happening of happenings) happening(tell, state);
      const after = events.slice(first);
      return { state, events: after, follows: (expected: Follows) => check(after, expected) };
    },
  };
}

function check(events: readonly Sequenced<Event>[], { records = [], asks = [], answers = [] }: Follows): void {
  const found = {
    records: events.flatMap(({ type }) => (type === 'effects.requested' || type === 'call.completed' ? [] : [type])),
    asks: events.flatMap((event) => (event.type === 'effects.requested' ? event.body.effects.map(shown) : [])),
    answers: events.flatMap(({ type, body }) =>
      type === 'call.completed' ? [`${body.method} ${body.failure?.reason ?? 'OK'}`] : [],
    ),
  };
  assert.deepEqual(found, { records, asks, answers });
}

const shown = (intent: Extract<Event, { type: 'effects.requested' }>['body']['effects'][number]): string =>
  intent.kind === 'WaitUntil' ? `wait: ${intent.purpose}` : intent.kind;
