/**
 * Performs released effects and reports how they ended. Knows which are under way; decides nothing, retries nothing:
 * what a failure means is the process managers' business. An effect that follows another begins without a word of the
 * journal in between. Timers live here too, since a timer is an effect.
 */
import type { Effect, EffectKind, EffectResults } from '../domain/model/effects.ts';
import { failureWordsOf } from '../domain/model/error-words.ts';
import { type Failure, FailureError, isFullDisk } from '../domain/model/errors.ts';
import type { EffectEnded } from '../domain/model/records.ts';
import type { EffectRequest } from '../domain/deciding/effect-request.ts';
import type { Clock, DigestOf, EffectAttachment, EffectContext, Perform, PerformEffects, Ready } from './ports.ts';
import { requestDigest } from './request-digest.ts';

export interface ReleasedEffect {
  readonly id: string;
  readonly kind: EffectKind;
  /** null: what the effect that it follows finds out is part of it, so that it is made when that has ended. */
  readonly request: EffectRequest | null;
  /** seq of the call that it is for. */
  readonly call: number | null;
  /**
   * An effect released with it or before it: it begins once that has succeeded, and fails with its words when that fails.
   */
  readonly follows: string | null;
}

export interface EffectEnd {
  readonly body: EffectEnded;
  /** What goes to the caller beside the journal. */
  readonly attachment: EffectAttachment | null;
  /** An effect that follows this one begins: both ends may go to the disk together. */
  readonly goesOn: boolean;
}

export interface EffectRunner {
  /** Effects that were released together. `callerGoneOf`: aborted when whose call it is for has gone. */
  readonly start: (
    effects: readonly ReleasedEffect[],
    callerGoneOf: (effect: ReleasedEffect) => AbortSignal | undefined,
  ) => void;
  /** Effects under way, with the kind and since when (monotonic ns). */
  readonly underWay: () => readonly { readonly id: string; readonly kind: EffectKind; readonly sinceMonoNs: bigint }[];
  /** How it ended is durable: nothing will follow it any more that was asked for while it was under way. */
  readonly forget: (effect: string) => void;
  /** Aborts what is under way; outcomes after this are not reported. */
  readonly stop: () => void;
}

export interface EffectRunnerOptions {
  readonly perform: PerformEffects;
  readonly clock: Clock;
  readonly ended: (end: EffectEnd) => void;
  /** The request of an effect that was released without one, now that what it follows has ended and that was told. */
  readonly requestOf: (effect: string) => EffectRequest;
  /** Recorded with each outcome, for replay to compare with; absent: none is. */
  readonly digestOf?: DigestOf;
}

interface Running {
  readonly kind: EffectKind;
  readonly sinceMonoNs: bigint;
  readonly followers: Follower[];
  /** Absent while it is under way; null: it succeeded. */
  failure?: Failure | null;
}

interface Follower {
  /** It begins only when the end of what it follows has been told. */
  readonly isMadeOfFollowed: boolean;
  readonly begin: () => void;
  readonly fail: (failure: Failure) => void;
}

/** Once what it follows has ended so. */
const goOn = ({ begin, fail }: Follower, failure: Failure | null): void => (failure === null ? begin() : fail(failure));

export function createEffectRunner({ perform, clock, ended, requestOf, digestOf }: EffectRunnerOptions): EffectRunner {
  const running = new Map<string, Running>();
  const timers = new Set<() => void>();
  const abort = new AbortController();

  /** It is kept until that is durable: what was asked for meanwhile may follow it. */
  const finish = (body: EffectEnded, attachment: EffectAttachment | null): void => {
    const { effect, failure = null } = body;
    const one = running.get(effect);
    const followers = one?.followers.splice(0) ?? [];
    if (one !== undefined) one.failure = failure;
    if (abort.signal.aborted) return;
    const isAhead = ({ isMadeOfFollowed }: Follower): boolean => failure === null && !isMadeOfFollowed;
    for (const follower of followers) if (isAhead(follower)) goOn(follower, null);
    ended({ body, attachment, goesOn: failure === null && followers.length > 0 });
    for (const follower of followers) if (!isAhead(follower)) goOn(follower, failure);
  };

  const fail = (id: string, kind: EffectKind, failure: Failure): void =>
    finish({ effect: id, kind, failure } as EffectEnded, null);

  function startTimer(id: string, dueAtNs: bigint): void {
    const forget = clock.at(dueAtNs, () => {
      timers.delete(forget);
      finish({ effect: id, kind: 'WaitUntil', result: {} }, null);
    });
    timers.add(forget);
  }

  type Performed = Exclude<Effect, { kind: 'WaitUntil' }>;
  async function run(
    id: string,
    effect: Performed,
    callerGone: AbortSignal | undefined,
    ready: Ready<EffectKind> | null,
  ): Promise<void> {
    let attachment: EffectAttachment | null = null;
    const context: EffectContext = {
      signal: abort.signal,
      ...(callerGone === undefined ? {} : { callerGone }),
      attach: (attached) => (attachment = attached),
    };
    const performing = performOne(perform, effect, context, ready);
    // Nobody waits for this processor time while the host is at work.
    const request = digestOf === undefined ? {} : { request: requestDigest(effect, digestOf) };
    const outcome = await performing;
    finish({ effect: id, kind: effect.kind, ...request, ...outcome } as EffectEnded, attachment);
  }

  const followedBy = ({ follows }: ReleasedEffect): Running | undefined =>
    follows === null ? undefined : running.get(follows);

  function start(released: ReleasedEffect, callerGone: AbortSignal | undefined, ready: Ready<EffectKind> | null): void {
    const { id, kind, request } = released;
    if (request?.ok === false) return fail(id, kind, request.failure);
    const begin = (made: EffectRequest): void => {
      if (!made.ok) return fail(id, kind, made.failure);
      const effect = made.value;
      if (effect.kind === 'WaitUntil') startTimer(id, BigInt(effect.dueAtNs));
      else void run(id, effect, callerGone, ready);
    };
    const own: Follower = {
      isMadeOfFollowed: request === null,
      begin: () => begin(request ?? requestOf(id)),
      fail: (failure) => {
        ready?.drop();
        fail(id, kind, failure);
      },
    };
    const followed = followedBy(released);
    if (followed === undefined) own.begin();
    else if (followed.failure !== undefined) goOn(own, followed.failure);
    else followed.followers.push(own);
  }

  return {
    start(effects, callerGoneOf) {
      if (abort.signal.aborted) return;
      for (const { id, kind } of effects) running.set(id, { kind, sinceMonoNs: clock.monoNs(), followers: [] });
      // Before what they follow begins, so that the two go on side by side.
      const ready = effects.map((effect) => readyOf(perform, effect, followedBy(effect), abort.signal));
      for (const [at, effect] of effects.entries()) start(effect, callerGoneOf(effect), ready[at] ?? null);
    },
    underWay: () =>
      [...running].flatMap(([id, { kind, sinceMonoNs, failure }]) =>
        failure === undefined ? [{ id, kind, sinceMonoNs }] : [],
      ),
    forget: (effect) => void running.delete(effect),
    stop() {
      abort.abort();
      for (const forget of timers) forget();
      timers.clear();
    },
  };
}

/** Of an effect that has to wait for what it follows; null: it gains nothing by the time until then. */
function readyOf(
  perform: PerformEffects,
  { kind, request }: ReleasedEffect,
  followed: Running | undefined,
  signal: AbortSignal,
): Ready<EffectKind> | null {
  if (kind === 'WaitUntil' || request?.ok !== true || followed === undefined || followed.failure !== undefined)
    return null;
  return performerOf(perform, kind).getReady?.(request.value, signal) ?? null;
}

/** Each kind's function takes that kind's effect; the compiler can't see that the two are picked by the same key. */
const performerOf = (perform: PerformEffects, kind: Exclude<EffectKind, 'WaitUntil'>): Perform<EffectKind> =>
  perform[kind] as Perform<EffectKind>;

type Outcome = { readonly result: EffectResults[EffectKind] } | { readonly failure: Failure };

async function performOne(
  perform: PerformEffects,
  effect: Exclude<Effect, { kind: 'WaitUntil' }>,
  context: EffectContext,
  ready: Ready<EffectKind> | null,
): Promise<Outcome> {
  try {
    return { result: await (ready?.perform(context) ?? performerOf(perform, effect.kind)(effect, context)) };
  } catch (error) {
    return { failure: failureOf(error, effect.kind) };
  }
}

function failureOf(error: unknown, doing: string): Failure {
  if (error instanceof FailureError) return error.failure;
  return { reason: isFullDisk(error) ? 'DiskFull' : 'HostFailed', message: `${doing}: ${failureWordsOf(error)}` };
}
