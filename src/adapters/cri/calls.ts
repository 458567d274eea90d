/**
 * How a handler makes a call of a request: those that change something go through the engine and are its records, those
 * that only read are answered from the read model and noted (C10). Knows no method by name.
 */
import { codeOfReason, type Failure, FailureError, GrpcCode, grpcCodeOf } from '../../domain/model/errors.ts';
import type { CallOptions, CallReply } from '../../engine/ports.ts';
import type { CallDraft } from '../../domain/call/draft.ts';
import type { ReadMethod } from '../../domain/call/read-methods.ts';
import type { CallContext } from './context.ts';
import type { CriParts } from './parts.ts';

type Method = CallDraft['method'];
type FieldsOf<M extends Method> = Omit<Extract<CallDraft, { method: M }>, 'method'>;
type Taken = CallReply & { readonly outcome: { readonly ok: true } };

/**
 * Runs a call through the engine; a refusal or failure is thrown. `fields` makes the request: what it refuses is
 * written down as a call too (C10).
 */
export async function submit<M extends Method>(
  parts: CriParts,
  method: M,
  fields: () => FieldsOf<M>,
  context: CallContext,
): Promise<Taken> {
  const request = await checked(parts, method, fields, context);
  // The compiler can't see that the fields of this method with this method's name are one of the drafts.
  const draft = { method, ...request } as unknown as CallDraft;
  return completed(await parts.submit(draft, optionsOf(context)));
}

/** Wraps a call that changes something into a handler: `fields` makes its request, `reply` the answer of what came of it. */
export const calling =
  <M extends Method, Request, Response>(
    parts: CriParts,
    method: M,
    fields: (request: Request) => FieldsOf<M>,
    reply: (taken: Taken) => Response,
  ): ((request: Request, context: CallContext) => Promise<Response>) =>
  async (request, context) =>
    reply(await submit(parts, method, () => fields(request), context));

/** The answer that says only that it was done. */
export const done = (): Record<string, never> => ({});

/** What `make` gives; when it refuses the request, that is journaled as the refusal of a call and thrown. */
export async function checked<T>(parts: CriParts, rpc: string, make: () => T, context: CallContext): Promise<T> {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    const { outcome } = await parts.submit({ method: 'Refused', rpc, failure: error.failure }, optionsOf(context));
    throw outcome.ok ? error : thrown(outcome.failure);
  }
}

function completed(reply: CallReply): Taken {
  const { outcome } = reply;
  if (!outcome.ok) throw thrown(outcome.failure);
  return { ...reply, outcome };
}

export const optionsOf = ({ caller, deadlineNs, traceParent, unknownFields, signal }: CallContext): CallOptions => ({
  caller,
  deadlineNs: deadlineNs(),
  traceParent: traceParent(),
  unknownFields,
  signal: signal(),
});

export const thrown = ({ reason, message }: Failure): FailureError => new FailureError(reason, message);

/** What a read call that takes no filter is about. */
export const everything = (): string => '';

/** Wraps a handler of a read call: it is noted when it is answered, with what `subjectOf` says it asked about. */
export function reading<Request extends object | null, Response>(
  parts: CriParts,
  method: ReadMethod,
  subjectOf: (request: Request) => string,
  answer: (request: Request, context: CallContext) => Promise<Response> | Response,
): (request: Request, context: CallContext) => Promise<Response> | Response {
  return (request, context) => {
    const startNs = parts.monoNs();
    const note = (code: GrpcCode, error?: unknown): void =>
      parts.noteRead(
        {
          atNs: parts.nowNs(),
          method,
          code,
          durationNs: parts.monoNs() - startNs,
          callerPid: context.caller?.pid ?? 0,
          callerUid: context.caller?.uid ?? 0,
          subject: subjectOf(request),
        },
        context.traceParent,
        () => ({
          caller: context.caller,
          request: setFields(request),
          unknownFields: context.unknownFields,
          failure: code === GrpcCode.OK ? null : failureOf(error),
        }),
      );
    const fitting = (response: Response): Response => {
      if (response instanceof Uint8Array && response.length > parts.messageBytesMax)
        throw tooLarge(method, response.length, parts.messageBytesMax);
      return response;
    };
    const answered = (response: Response): Response => {
      note(GrpcCode.OK);
      return response;
    };
    const failed = (error: unknown): never => {
      note(codeOf(error), error);
      throw error;
    };
    try {
      const response = answer(request, context);
      return response instanceof Promise ? response.then(fitting).then(answered, failed) : answered(fitting(response));
    } catch (error) {
      return failed(error);
    }
  };
}

/** Calls that answer the same in as many messages as it takes. */
const STREAMS: Readonly<Partial<Record<ReadMethod, ReadMethod>>> = {
  ListPodSandbox: 'StreamPodSandboxes',
  ListContainers: 'StreamContainers',
  ListImages: 'StreamImages',
  ListPodSandboxMetrics: 'StreamPodSandboxMetrics',
};

/** A part of a list would be taken for all of it, so there is none. */
const tooLarge = (method: ReadMethod, bytes: number, bytesMax: number): FailureError => {
  const stream = STREAMS[method];
  const remedy = stream === undefined ? '' : `: ask ${stream}, which answers in parts`;
  const message = `The answer to ${method} has ${bytes} bytes, more than limits.request_max (${bytesMax}) lets through${remedy}.`;
  return new FailureError('TooLarge', message);
};

/** What was asked for, without what says nothing. */
const setFields = (request: object | null): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(request ?? {}).filter(([, value]) => !isUnset(value)));

const isUnset = (value: unknown): boolean => value === undefined || value === '' || value === false;

const failureOf = (error: unknown): Failure =>
  error instanceof FailureError
    ? error.failure
    : { reason: 'Bug', message: "It failed unexpectedly; see the daemon's log." };

const codeOf = (error: unknown): GrpcCode =>
  error instanceof FailureError ? grpcCodeOf(error.failure) : codeOfReason.Bug;
