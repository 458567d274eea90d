/**
 * Effects: all that scribe ever does to the world outside its journal. A process manager requests them, the engine
 * releases a request once its intent is durable (C2), an adapter performs it and its outcome comes back as a record.
 * Every effect is "make it so": performing it again after a crash half-way gives the same result, and what is already
 * there or already gone counts as success. Requests are complete: an adapter needs no other state. They are in effects/
 * by what they are done to. Must not hold secrets: tokens stand for them, and the adapter fills them in (C12).
 */
import type { Int64 } from './cri.ts';
import type { CheckpointEffect, CheckpointIntents, CheckpointResults } from './effects/checkpoint.ts';
import type { ContainerEffect, ContainerIntents, ContainerResults } from './effects/container.ts';
import type { ImageEffect, ImageIntents, ImageResults } from './effects/image.ts';
import type { NriEffect, NriIntents, NriResults } from './effects/nri.ts';
import type { PodSandboxEffect, PodSandboxIntents, PodSandboxResults } from './effects/pod-sandbox.ts';
import type { SessionEffect, SessionIntents, SessionResults } from './effects/session.ts';
import type { TaskEffect, TaskIntents, TaskResults } from './effects/task.ts';

export type Effect =
  | PodSandboxEffect
  | TaskEffect
  | ContainerEffect
  | CheckpointEffect
  | SessionEffect
  | ImageEffect
  | NriEffect
  /** Succeeds at `dueAtNs` of the wall clock, at once when that is past. */
  | { readonly kind: 'WaitUntil'; readonly dueAtNs: Int64; readonly purpose: TimerPurpose };

export type EffectKind = Effect['kind'];
export type EffectOf<K extends EffectKind> = Extract<Effect, { kind: K }>;

/** What each effect's success says; recorded whole, so it stays small and holds no secret. */
export interface EffectResults
  extends PodSandboxResults,
    TaskResults,
    ContainerResults,
    CheckpointResults,
    SessionResults,
    ImageResults,
    NriResults {
  readonly WaitUntil: Record<string, never>;
}

/**
 * What each effect's intent says beside its kind; null for nothing, since the rest of the request follows from the state.
 * Recorded: a kind of effect without its line is a compile error.
 */
export interface EffectIntents
  extends PodSandboxIntents,
    TaskIntents,
    ContainerIntents,
    CheckpointIntents,
    SessionIntents,
    ImageIntents,
    NriIntents {
  readonly WaitUntil: { readonly dueAtNs: Int64; readonly purpose: TimerPurpose };
}

/**
 * grace: a stop's SIGKILL. exit: a killed task's exit is overdue, so its shim is asked. retry: what is owed is tried
 * again. claim: a creation that nobody asked for again is undone. plugins: creations wait for required NRI
 * plugins no longer.
 */
export type TimerPurpose = 'grace' | 'exit' | 'retry' | 'claim' | 'plugins';
