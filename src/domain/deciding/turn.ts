/**
 * One turn: an input is written into the state, and everything it leads to is decided and written too, at once and
 * without waiting (C1). The result is a list of events, which the engine numbers, stores and releases. All decisions go
 * through emit, so the state that a decision sees is always the newest.
 */
import type { TimerPurpose } from '../model/effects.ts';
import type { CallMethod, CallOutcome, Event, Input, Intent, Sequenced } from '../model/records.ts';
import { GrpcCode, grpcCodeOf } from '../model/errors.ts';
import { containerExitOf } from '../model/container-state.ts';
import { leavesCreationsAlone } from '../model/journal-doubt.ts';
import type { NodeState, OpenCall, OpenEffect } from '../model/state.ts';
import type { Int64 } from '../model/cri.ts';
import { succeeded } from '../model/result.ts';
import { hasTimer } from './open-effects.ts';

export type Evolve = (state: NodeState, record: Sequenced) => void;

export interface Turn {
  readonly state: NodeState;
  /** Writes a record into the state: turn/evolve.ts, which knows all rooms, as no room may. */
  readonly evolve: Evolve;
  readonly input: Sequenced<Input>;
  /** The request that an effect.ended answers, as it was before the input was written down. */
  readonly ended: OpenEffect | null;
  /** What stood before a daemon.started, which may say of it that it is gone; empty for all other inputs. */
  readonly stood: Standing;
  readonly events: Sequenced<Event>[];
  /** Streams of objects that may have something to do next; decide.ts calls their process managers until none is left. */
  readonly woken: Set<string>;
}

/** Starts a turn by writing the input into the state. */
export function beginTurn(state: NodeState, input: Sequenced<Input>, evolve: Evolve): Turn {
  const effect = input.type === 'effect.ended' || input.type === 'turn.failed' ? input.body.effect : undefined;
  const ended = effect === undefined ? null : (state.effects.get(effect) ?? null);
  const stood = standingOf(state, input);
  evolve(state, input);
  return { state, evolve, input, ended, stood, events: [], woken: new Set() };
}

/** Ids of READY sandboxes, and of containers that ran. */
interface Standing {
  readonly sandboxes: ReadonlySet<string>;
  readonly containers: ReadonlySet<string>;
}

const NOTHING: Standing = { sandboxes: new Set(), containers: new Set() };

function standingOf({ sandboxes, containers }: NodeState, { type }: Sequenced<Input>): Standing {
  if (type !== 'daemon.started') return NOTHING;
  return {
    sandboxes: new Set([...sandboxes.values()].filter(({ phase }) => phase === 'ready').map(({ id }) => id)),
    containers: new Set(
      [...containers.values()].filter((container) => containerExitOf(container) === null).map(({ id }) => id),
    ),
  };
}

/** Records an event of this turn. `call` is the call on whose behalf it happens; by default the input's. */
export function emit(turn: Turn, stream: string, event: Event, call: number | null = turn.input.call): void {
  const { state, evolve, input, events } = turn;
  const seq = input.seq + events.length + 1;
  const sequenced: Sequenced<Event> = {
    ...event,
    seq,
    atNs: input.atNs,
    monoNs: input.monoNs,
    stream,
    cause: input.seq,
    call,
  };
  events.push(sequenced);
  evolve(state, sequenced);
}

/** The call on whose behalf the effect was performed that has just ended; undefined when there is none, or it is over. */
export const callBehind = ({ state, ended }: Turn): OpenCall | undefined =>
  ended === null || ended.call === null ? undefined : state.calls.get(ended.call);

/** The same turn, in which what is recorded now happens on behalf of another call; undefined: of the one that it has. */
export const onBehalfOf = (turn: Turn, call: OpenCall | undefined): Turn =>
  call === undefined ? turn : { ...turn, input: { ...turn.input, call: call.seq } };

/** Has the object's process manager look at it again before the turn ends. */
export const wake = (turn: Turn, stream: string): void => void turn.woken.add(stream);

export function request(turn: Turn, stream: string, ...effects: readonly Intent[]): void {
  emit(turn, stream, { type: 'effects.requested', body: { effects } });
}

/** The same on a call's own stream and on its behalf, also when something else brought it about. */
export function requestFor(turn: Turn, call: OpenCall, ...effects: readonly Intent[]): void {
  emit(turn, call.stream, { type: 'effects.requested', body: { effects } }, call.seq);
}

const NS_PER_MS = 1_000_000n;

export const afterMs = (turn: Turn, delayMs: number): Int64 =>
  String(turn.input.atNs + BigInt(Math.round(delayMs)) * NS_PER_MS);

export function setTimer(turn: Turn, stream: string, purpose: TimerPurpose, dueAtNs: Int64): void {
  request(turn, stream, { kind: 'WaitUntil', dueAtNs, purpose });
}

/** Unless one for this is set on the stream: then that stays. */
export function ensureTimer(turn: Turn, stream: string, purpose: TimerPurpose, dueAtNs: Int64): void {
  if (!hasTimer(turn.state, stream, purpose)) setTimer(turn, stream, purpose, dueAtNs);
}

const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 60_000;

/** When what an undo owes is tried again: doubling from a second to a minute. */
export const retryDelayMs = (failures: number): number =>
  Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.max(0, Math.min(failures - 1, 10)));

/** How long a finished creation waits for somebody to ask for it when its caller went away (C5). */
export const CLAIM_MS = 120_000;

export function complete(turn: Turn, call: OpenCall, outcome: CallOutcome): void {
  const { request } = call;
  // One that only reads was answered before it was recorded.
  const durationNs = request.method === 'Read' ? request.durationNs : String(turn.input.monoNs - BigInt(call.monoNs));
  const common = { method: call.request.method, durationNs, ...(call.detached ? { detached: true } : {}) };
  const body = outcome.ok
    ? {
        ...common,
        code: GrpcCode.OK,
        ...(Object.keys(outcome.value).length > 0 ? { response: outcome.value } : {}),
      }
    : { ...common, code: grpcCodeOf(outcome.failure), failure: outcome.failure };
  emit(turn, call.stream, { type: 'call.completed', body }, call.seq);
}

/**
 * From here on the call waits for this creation, as others do (C5). One that was left alone, because the journal is doubted,
 * goes on with that: somebody asks for it.
 */
export function join(turn: Turn, call: OpenCall, target: string): void {
  emit(turn, call.stream, { type: 'call.joined', body: { target } }, call.seq);
  if (leavesCreationsAlone(turn.state)) wake(turn, target);
}

export function callsWaitingFor(turn: Turn, target: string, methods: readonly CallMethod[]): OpenCall[] {
  const waiting: OpenCall[] = [];
  for (const call of turn.state.calls.values())
    if (call.target === target && methods.includes(call.request.method)) waiting.push(call);
  return waiting;
}

/** Answers every call of these methods that waits for this target. */
export function answer(turn: Turn, target: string, methods: readonly CallMethod[], outcome: CallOutcome): void {
  for (const call of callsWaitingFor(turn, target, methods)) complete(turn, call, outcome);
}

export const OK: CallOutcome = succeeded({});
