/** What the CRI services are made from: doors to the engine, the read model, and what other adapters know. */
import type { CallDraft, CallOptions, CallReply, NoteRead, ReadModel, TakeCall } from '../../engine/ports.ts';
import { type Failure, FailureError, GrpcCode, grpcCodeOf } from '../../domain/errors.ts';
import type { Caller } from '../../domain/records.ts';
import type { Container, PodSandbox } from '../../domain/state.ts';
import { idFailure, wholeId } from '../../domain/call/canonical.ts';
import type { StreamingRequest } from '../streaming/types.ts';
import type * as wire from '../wire/cri/api.ts';
import type { CallContext } from './context.ts';
import type { ContainerEvents } from './events.ts';
import type { Lists } from './lists.ts';

export interface CriParts {
  readonly version: string;
  readonly take: TakeCall;
  readonly view: ReadModel;
  readonly lists: Lists;
  readonly events: ContainerEvents;
  readonly noteRead: NoteRead;
  readonly nowNs: () => bigint;
  readonly monoNs: () => bigint;
  /** Keeps an env value and gives its token; forgets values that nobody used. */
  readonly tokenOf: (value: Uint8Array) => string;
  /** Keeps registry credentials for one pull and gives their token. */
  readonly keepCredentials: (auth: wire.AuthConfig) => string;
  readonly streaming: StreamingDoor;
  /** null when the container has no cgroup any more. */
  readonly statsOf: (container: Container) => Promise<wire.ContainerStats | null>;
  /** Those that have gone meanwhile, or can't be read, are left out. */
  readonly statsOfAll: (containers: readonly Container[]) => Promise<wire.ContainerStats[]>;
  /** What a pod's shim says of its sandbox, for who wants all of it; never rejects, and is bounded in size and time. */
  readonly sandboxDetails: (podSandboxId: string) => Promise<Readonly<Record<string, unknown>>>;
  /** As it is now; pods that have gone meanwhile are left out, and containers of those that stay. */
  readonly podStatsOf: (sandboxes: readonly PodSandbox[]) => Promise<wire.PodSandboxStats[]>;
  readonly podMetricsOf: (sandboxes: readonly PodSandbox[]) => Promise<wire.PodSandboxMetrics[]>;
  readonly imageFsInfo: () => wire.ImageFsInfoResponse;
  /** Runtime features for Status, the default handler under the empty name too. */
  readonly runtimeHandlers: () => readonly wire.RuntimeHandler[];
  /** What verbose Status says of the configuration: no secrets. */
  readonly describeConfig: () => Readonly<Record<string, unknown>>;
}

/** The call that allowed a session, and who made it. */
export interface Allowance {
  readonly allowedBy: string;
  readonly caller: Caller | null;
}

export interface StreamingDoor {
  readonly newId: () => string;
  /** The address of a session; throws when too many wait to be used. */
  readonly urlFor: (request: StreamingRequest, allowance: Allowance) => string;
}

type Method = CallDraft['method'];
type FieldsOf<M extends Method> = Omit<Extract<CallDraft, { method: M }>, 'method'>;
type Taken = CallReply & { readonly outcome: { readonly ok: true } };

/**
 * Runs a call through the engine; a refusal or failure is thrown. `fields` makes the request: what it refuses is
 * written down as a call too (C10).
 */
export async function take<M extends Method>(
  parts: CriParts,
  method: M,
  fields: () => FieldsOf<M>,
  context: CallContext,
): Promise<Taken> {
  const request = await checked(parts, method, fields, context);
  // The compiler can't see that the fields of this method with this method's name are one of the drafts.
  const draft = { method, ...request } as unknown as CallDraft;
  return completed(await parts.take(draft, optionsOf(context)));
}

/** What `make` gives; when it refuses the request, that is journaled as the refusal of a call and thrown. */
export async function checked<T>(parts: CriParts, rpc: string, make: () => T, context: CallContext): Promise<T> {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    const { outcome } = await parts.take({ method: 'Refused', rpc, failure: error.failure }, optionsOf(context));
    throw outcome.ok ? error : failed(outcome.failure);
  }
}

function completed(reply: CallReply): Taken {
  const { outcome } = reply;
  if (!outcome.ok) throw failed(outcome.failure);
  return { ...reply, outcome };
}

export const optionsOf = ({ caller, deadlineNs, traceParent, signal }: CallContext): CallOptions => ({
  caller,
  deadlineNs: deadlineNs(),
  traceParent: traceParent(),
  signal: signal(),
});

const failed = ({ reason, message }: Failure): FailureError => new FailureError(reason, message);

/** What a read call that takes no filter is about. */
export const everything = (): string => '';

/** Wraps a handler of a read call: it is noted when it is answered. */
export function reading<Request, Response>(
  parts: CriParts,
  method: string,
  subjectOf: (request: Request) => string,
  answer: (request: Request, context: CallContext) => Promise<Response> | Response,
): (request: Request, context: CallContext) => Promise<Response> | Response {
  async function settle(response: Promise<Response>, request: Request, context: CallContext, startNs: bigint) {
    try {
      const message = await response;
      noteRead(parts, method, subjectOf(request), context, startNs, GrpcCode.OK);
      return message;
    } catch (error) {
      noteRead(parts, method, subjectOf(request), context, startNs, codeOf(error));
      throw error;
    }
  }
  return (request, context) => {
    const startNs = parts.monoNs();
    try {
      const response = answer(request, context);
      if (response instanceof Promise) return settle(response, request, context, startNs);
      noteRead(parts, method, subjectOf(request), context, startNs, GrpcCode.OK);
      return response;
    } catch (error) {
      noteRead(parts, method, subjectOf(request), context, startNs, codeOf(error));
      throw error;
    }
  };
}

/** Notes a read call as answered now (C10). */
function noteRead(
  parts: CriParts,
  method: string,
  subject: string,
  { caller }: CallContext,
  startNs: bigint,
  code: GrpcCode,
): void {
  parts.noteRead({
    atNs: parts.nowNs(),
    method,
    code,
    durationNs: parts.monoNs() - startNs,
    callerPid: caller?.pid ?? 0,
    callerUid: caller?.uid ?? 0,
    subject,
  });
}

const codeOf = (error: unknown): GrpcCode =>
  error instanceof FailureError ? grpcCodeOf(error.failure) : GrpcCode.INTERNAL;

/** The object an id or its beginning names; throws when it could name several. `field` is CRI's name of the id. */
export function find<T>(field: string, map: ReadonlyMap<string, T>, id: string): T | undefined {
  const exact = map.get(id);
  if (exact !== undefined) return exact;
  const failure = idFailure(field, map, id);
  if (failure !== null) throw failed(failure);
  return map.get(wholeId(map, id));
}
