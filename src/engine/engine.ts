/**
 * The engine: takes inputs, decides them in one synchronous turn, has the journal keep the records, and lets out what
 * follows from them once they are durable (C1): replies, effects, projections, subscribers.
 *
 *   input ──> turn: decide, number, evolve ──> journal.append ──(durable)──> publish ──> replies
 *                                                                              └──> effects ──> outcomes ──> input
 *
 * Decisions of one pod never wait for each other and never interleave (C4): a turn is synchronous, so the JavaScript
 * loop itself serialises them. Only effects wait, and calls for effects.
 */
import { fullDiskFailure, requestOf } from '../domain/call/catalogue.ts';
import { decide as decideInput } from '../domain/turn/decide.ts';
import { type Failure, KnownError, messageOf } from '../domain/model/errors.ts';
import { knownHeadOf } from '../domain/model/error-words.ts';
import {
  type BodyOf,
  type CallOutcome,
  type CallRequest,
  callStream,
  type Input,
  NODE_STREAM,
  type Sequenced,
} from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';
import { failureOfTurn } from '../domain/deciding/turn-failed.ts';
import type { Journal, RecordOwn } from '../journal/types.ts';
import { createEffectRunner, type EffectEnd } from './effect-runner.ts';
import { createTurns, type DecidedTurn, type SubmittedTurn, type Unfinished } from './guarded-turns.ts';
import { requestOnceFollowed } from './released-effects.ts';
import { newsIn } from '../domain/turn/observations.ts';
import type {
  CallOptions,
  CallReply,
  Clock,
  DigestOf,
  EffectAttachment,
  Ids,
  Observe,
  PerformEffects,
} from './ports.ts';
import type { CallDraft } from '../domain/call/draft.ts';

export interface EngineOptions {
  readonly journal: Journal;
  /** Folded from the journal up to its head; the engine owns it from here on. */
  readonly state: NodeState;
  readonly perform: PerformEffects;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly boot: string;
  /** Hears every durable record, in order, before replies and effects that follow from it. */
  readonly publish: (records: readonly Sequenced[]) => void;
  /** Folded from what was published, and from nothing else: what a turn that throws is put back to. */
  readonly published: Readonly<NodeState>;
  /** True while the disk is too full for anything but stopping and removing (C7). */
  readonly diskIsFull: () => boolean;
  /** Told, in a sentence, what nobody may miss. */
  readonly report: (message: string) => void;
  /** The journal can't be written, or an input not be taken: the daemon has to end (C7). */
  readonly fatal: (error: Error) => void;
  /** The decision function; the simulator plants bugs in it to see that they are found. */
  readonly decide?: typeof decideInput;
  /** Has the digest of each performed request recorded with its outcome; absent: none is. */
  readonly digestOf?: DigestOf;
}

export interface Engine {
  readonly call: (request: CallDraft, options: CallOptions) => Promise<CallReply>;
  readonly observe: Observe;
  /** Records the start of this life and begins recovery; calls are taken from then on. */
  readonly start: (body: BodyOf<'daemon.started'>) => Promise<void>;
  /** Records the end of this life; nothing is taken afterwards. */
  readonly stop: (reason: string) => Promise<void>;
  /** Nothing is taken any more. */
  readonly isStopped: () => boolean;
  readonly underWay: () => readonly { readonly id: string; readonly kind: string; readonly sinceMonoNs: bigint }[];
  /** Numbers and appends a record that the journal asked for itself (reads.closed, journal.pruned). */
  readonly recordOwn: RecordOwn;
  /**
   * The moment up to which what was published is complete: of nothing that is still on its way to the disk was it known
   * by then. A client that has a status of this time takes every later one for news.
   */
  readonly publishedUpToNs: () => bigint;
  /** Nothing is on its way to the disk: what is decided from is what was published. */
  readonly isSettled: () => boolean;
  /** For who writes down how the daemon ended. */
  readonly unfinished: () => Unfinished;
  /** For looking only. */
  readonly state: NodeState;
}

interface Waiting {
  readonly resolve: (reply: CallReply) => void;
  readonly gone: AbortSignal | undefined;
  attachment: EffectAttachment | null;
}

const receivedBody = (
  request: CallRequest,
  { caller, deadlineNs, traceParent, unknownFields = [] }: CallOptions,
): BodyOf<'call.received'> => ({
  request,
  caller,
  deadlineNs: deadlineNs === null ? null : String(deadlineNs),
  ...(typeof traceParent === 'string' ? { traceParent } : {}),
  ...(unknownFields.length === 0 ? {} : { unknownFields }),
});

export function createEngine(options: EngineOptions): Engine {
  const { journal, state, clock, ids, boot, publish, published, report, fatal, decide = decideInput } = options;
  const waiting = new Map<number, Waiting>();
  let serving = false;
  let stopped = false;

  const runner = createEffectRunner({
    perform: options.perform,
    clock,
    ended: effectEnded,
    requestOf: (effect) => requestOnceFollowed(effect, state, report),
    ...(options.digestOf === undefined ? {} : { digestOf: options.digestOf }),
  });
  const turns = createTurns({ journal, state, published, clock, boot, decide, release, report, fatal });

  const submit = (input: Input, stream: string, cause: number | null, call: number | null): SubmittedTurn =>
    turns.submit({ input, stream, cause, call });

  function release({ records, effects }: DecidedTurn): void {
    publish(records);
    const [input] = records;
    if (input?.type === 'effect.ended' || input?.type === 'turn.failed') runner.forget(input.body.effect ?? '');
    for (const record of records) if (record.type === 'call.completed') reply(record);
    if (!stopped) runner.start(effects, ({ call }) => waiting.get(call ?? 0)?.gone);
  }

  function reply({ call, body }: Sequenced & { readonly body: BodyOf<'call.completed'> }): void {
    const waiter = call === null ? undefined : waiting.get(call);
    if (call === null || waiter === undefined) return;
    waiting.delete(call);
    const outcome: CallOutcome =
      body.failure === undefined ? { ok: true, value: body.response ?? {} } : { ok: false, failure: body.failure };
    waiter.resolve({ outcome, attachment: waiter.attachment });
  }

  function effectEnded({ body, attachment, goesOn }: EffectEnd): void {
    const open = state.effects.get(body.effect);
    // A timer that is no longer wanted leaves no trace.
    if (stopped || open === undefined) return runner.forget(body.effect);
    const waiter = open.call === null ? undefined : waiting.get(open.call);
    if (waiter !== undefined && attachment !== null) waiter.attachment = attachment;
    const cause = Number.parseInt(body.effect, 10);
    turns.submit({ input: { type: 'effect.ended', body }, stream: open.stream, cause, call: open.call }, goesOn);
  }

  function call(draft: CallDraft, callOptions: CallOptions): Promise<CallReply> {
    if (!serving || stopped) return Promise.resolve(refusal(NOT_SERVING));
    const failure = options.diskIsFull() ? fullDiskFailure(draft) : null;
    if (failure !== null) return Promise.resolve(refusal(failure));
    const body = receivedBody(readable(draft, options), callOptions);
    const { signal } = callOptions;
    return new Promise((resolve) => {
      const stream = callStream(ids.uuid());
      // The reply can't come before this turn's records are durable, so registering after it is soon enough.
      const { seq, durable } = submit({ type: 'call.received', body }, stream, null, null);
      if (seq === null) {
        const failure = failureOfTurn(draft.method, 'the call could not even be refused');
        durable.then(
          () => resolve({ outcome: { ok: false, failure }, attachment: null }),
          () => undefined,
        );
        return;
      }
      waiting.set(seq, { resolve, gone: signal, attachment: null });
      const detach = (): void => {
        if (!stopped && state.calls.has(seq))
          submit({ type: 'call.detached', body: { received: seq } }, stream, null, seq);
      };
      if (signal?.aborted) detach();
      else signal?.addEventListener('abort', detach, { once: true });
    });
  }

  const observe: Observe = async (observation) => {
    if (stopped) throw new KnownError('The daemon is ending.');
    const news = newsIn(state, observation);
    // What is no news may still be on its way to the disk: whoever observed it is answered only after that (C3).
    return news === null ? turns.newestDurable() : submit(news.input, news.stream, null, null).durable;
  };

  return {
    call,
    observe,
    recordOwn: turns.recordOwn,
    state,
    publishedUpToNs: () => {
      const oldestNs = turns.oldestUnpublishedNs();
      return oldestNs === null ? clock.nowNs() : oldestNs - 1n;
    },
    isSettled: () => turns.oldestUnpublishedNs() === null,
    unfinished: turns.unfinished,
    underWay: runner.underWay,
    isStopped: () => stopped,
    async start(body) {
      const { durable } = submit({ type: 'daemon.started', body }, NODE_STREAM, null, null);
      serving = true;
      await durable;
    },
    async stop(reason) {
      if (stopped) return;
      runner.stop();
      const { durable } = submit({ type: 'daemon.stopped', body: { reason } }, NODE_STREAM, null, null);
      stopped = true;
      await durable;
      for (const waiter of waiting.values()) waiter.resolve(refusal(NOT_SERVING));
      waiting.clear();
    },
  };
}

const refusal = (failure: Failure): CallReply => ({
  outcome: { ok: false, failure },
  attachment: null,
  unrecorded: true,
});

/** The request as it is decided; one that can't be made so is refused. */
function readable(
  draft: CallDraft,
  { state, ids, report }: Pick<EngineOptions, 'state' | 'ids' | 'report'>,
): CallRequest {
  try {
    return requestOf(state, draft, ids.hex64);
  } catch (error) {
    report(`A request of ${draft.method} could not be read: ${knownHeadOf(error)}`);
    return { method: 'Refused', rpc: draft.method, failure: failureOfTurn(draft.method, messageOf(error)) };
  }
}

const NOT_SERVING: Failure = {
  reason: 'NotServing',
  message: 'The daemon is starting or ending; try again in a moment.',
};
