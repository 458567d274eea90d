/**
 * The doors between the engine and what surrounds it. Adapters implement PerformEffect and call Observe; the
 * engine knows nothing else of them. Nothing here decides anything.
 */
import type { Effect, EffectKind, EffectOf, EffectResults, TaskExit } from '../domain/effects.ts';

/**
 * Performs one effect. Rejects with a FailureError (domain/errors.ts) when it could not be done; any other
 * rejection is recorded as HostFailed with its message. Must be safe to call again after a crash half-way.
 * `attach` hands the caller what must not be recorded (exec output): it reaches the reply, not the journal.
 */
export type Perform<K extends EffectKind> = (effect: EffectOf<K>, context: EffectContext) => Promise<EffectResults[K]>;

export interface EffectContext {
  /** Aborted when the daemon ends, and when the caller of a PullImage has gone and nobody else waits for it. */
  readonly signal: AbortSignal;
  readonly attach: (attachment: EffectAttachment) => void;
}

export interface EffectAttachment {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/**
 * One function per kind of effect. main.ts puts it together from the adapters; the simulator has its own. Timers
 * (WaitUntil) are the engine's own, on the clock it was given.
 */
export type PerformEffects = { readonly [K in Exclude<EffectKind, 'WaitUntil'>]: Perform<K> };

/** Facts that arrive unasked. The promise resolves once the fact is durable: only then may a shim be answered (C3). */
export type Observation =
  /** execId is null for the container's own task. The same exit may be observed any number of times. */
  | {
      readonly kind: 'TaskExited';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly execId: string | null;
      readonly exit: TaskExit;
    }
  | { readonly kind: 'TaskOomed'; readonly containerId: string }
  /** The connection to a shim closed and its process is gone. */
  | { readonly kind: 'ShimLost'; readonly podSandboxId: string }
  /** The CNI configuration changed: a conflist to use from now on, or why there is none. */
  | { readonly kind: 'NetworkConfigured'; readonly confList: unknown; readonly problem: string | null };

export type Observe = (observation: Observation) => Promise<void>;

/** Wall clock and monotonic clock, in nanoseconds. The simulator's are virtual. */
export interface Clock {
  readonly nowNs: () => bigint;
  readonly monoNs: () => bigint;
  /** Calls `fire` at `dueAtNs` of the wall clock; the returned function forgets it. */
  readonly at: (dueAtNs: bigint, fire: () => void) => () => void;
}

/** Random ids: 64 hex characters for CRI objects. */
export interface Ids {
  readonly hex64: () => string;
  readonly uuid: () => string;
}

export type { Effect };
