/**
 * The interfaces between the engine and what surrounds it. Adapters implement PerformEffect and call Observe; the
 * engine knows nothing else of them. Nothing here decides anything.
 */
import type { Observable } from 'rxjs';
import type { Observation } from '../domain/model/observation.ts';
import type { CallDraft } from '../domain/call/draft.ts';
import type { EffectKind, EffectOf, EffectResults } from '../domain/model/effects.ts';
import type { Failure } from '../domain/model/errors.ts';
import type { CallOutcome, Caller, RecordType, Sequenced } from '../domain/model/records.ts';
import type { UnknownField } from '../domain/model/unknown-fields.ts';
import type { NodeState } from '../domain/model/state.ts';
import type { ReadRow } from '../journal/types.ts';

/**
 * Performs one effect. Rejects with a FailureError (domain/model/errors.ts) when it could not be done; any other
 * rejection is recorded as HostFailed with its message. Must be safe to call again after a crash half-way.
 * `attach` hands the caller what must not be recorded (exec output): it reaches the reply, not the journal.
 */
export interface Perform<K extends EffectKind> {
  (effect: EffectOf<K>, context: EffectContext): Promise<EffectResults[K]>;
  /** For an effect that waits for the one that it follows: gets ready what takes time meanwhile. Its intent is durable. */
  readonly getReady?: (effect: EffectOf<K>, signal: AbortSignal) => Ready<K> | null;
}

/**
 * An effect that can begin at any moment, and that has done nothing yet. It is performed once or dropped, unless the daemon
 * ends (`signal`). Nothing may be left of it when it is dropped, nor when the daemon dies.
 */
export interface Ready<K extends EffectKind> {
  readonly perform: (context: EffectContext) => Promise<EffectResults[K]>;
  /** What it follows has failed. */
  readonly drop: () => void;
}

export interface EffectContext {
  /** Aborted when the daemon ends. */
  readonly signal: AbortSignal;
  /** Aborted when whose call the effect is for has gone. Absent: it is for no call, or for one that can't go away. */
  readonly callerGone?: AbortSignal;
  readonly attach: (attachment: EffectAttachment) => void;
}

export interface EffectAttachment {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/**
 * One function per kind of effect. src/daemon/performers.ts puts it together from the adapters; the simulator has its own. Timers
 * (WaitUntil) are the engine's own, on the clock it was given.
 */
export type PerformEffects = { readonly [K in Exclude<EffectKind, 'WaitUntil'>]: Perform<K> };

/** Resolves once the fact is durable: only then may a shim be answered (C3). */
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

/** SHA-256 of a text, in hex. */
export type DigestOf = (text: string) => string;

export interface CallReply {
  readonly outcome: CallOutcome;
  readonly attachment: EffectAttachment | null;
  /** Refused before it is decided about (C7, C18): no record tells of it. */
  readonly unrecorded?: true;
}

export interface CallOptions {
  readonly caller: Caller | null;
  readonly deadlineNs: bigint | null;
  /** The caller's span (W3C traceparent), where it told one. */
  readonly traceParent?: string | null;
  /** What the request had more than the contract knows. */
  readonly unknownFields?: readonly UnknownField[];
  /** Aborted when the caller has gone: the call detaches and what it began runs on (C5). */
  readonly signal?: AbortSignal;
}

export type SubmitCall = (request: CallDraft, options: CallOptions) => Promise<CallReply>;

export type RecordOf<T extends RecordType> = Sequenced & { readonly type: T };

/** Durable changes, told when the state shows them. Neither stream ever errs. */
export interface Changes {
  /** Each is the records of one turn. */
  readonly changes: Observable<readonly Sequenced[]>;
  /** The records of these types, one by one. */
  readonly recordsOf: <T extends RecordType>(...types: readonly T[]) => Observable<RecordOf<T>>;
}

/** What clients are shown: folded from durable records. For reading only. */
export interface ReadModel extends Changes {
  readonly state: Readonly<NodeState>;
  /** Each number grows with every change of its kind of object: what was built from it is then out of date. */
  readonly versions: () => { readonly sandboxes: number; readonly containers: number; readonly images: number };
}

/** An answered read call, beyond its row: asked for only where the audit rules want it. */
export interface ReadDetails {
  readonly caller: Caller | null;
  /** The fields of the request that are set. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly unknownFields: readonly UnknownField[];
  readonly failure: Failure | null;
}

/** Hears of an answered read call: metrics, traces. */
export type HearRead = (row: ReadRow, traceParent: () => string | null) => void;

/** Notes an answered read call; never waits (C10). The caller's traceparent is for who traces, and is not kept. */
export type NoteRead = (row: ReadRow, traceParent: () => string | null, details: () => ReadDetails) => void;

/** Has an answered read call recorded, as far as the audit rules say. */
export type RecordRead = (row: ReadRow, details: () => ReadDetails) => void;

export type CriEventType =
  | 'CONTAINER_CREATED_EVENT'
  | 'CONTAINER_STARTED_EVENT'
  | 'CONTAINER_STOPPED_EVENT'
  | 'CONTAINER_DELETED_EVENT';

/** Something GetContainerEvents tells of; a sandbox's events carry its own id. */
export interface CriEvent {
  readonly seq: number;
  readonly type: CriEventType;
  readonly containerId: string;
  readonly atNs: bigint;
}

/** Durable records to the CRI events in them. */
export type CriEventsOf = (record: Sequenced) => readonly CriEvent[];
