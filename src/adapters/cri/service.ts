/**
 * From a generated service definition and its handlers to what grpc-js serves. Every method of the contract is there:
 * one without a handler is refused and journaled. Replies may come already encoded. Knows no method by name.
 */
import { PassThrough, type Readable } from 'node:stream';
import {
  type handleUnaryCall,
  Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type Failure, FailureError, grpcCodeOf } from '../../domain/model/errors.ts';
import type { UnknownField } from '../../domain/model/unknown-fields.ts';
import { traceParentIn } from '../../domain/values/trace-parent.ts';
import type { MessageFns } from '../../wire/cri/api.ts';
import { unknownFieldsIn } from './messages/unknown-fields.ts';
import { type CallContext, DAEMON_ENDS, type Handlers, type Reply, type ServiceShape } from './context.ts';
import type { Gate } from './calls-under-way.ts';
import type { Peers } from './peers.ts';

export interface ServiceParts {
  readonly name: string;
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

export interface ServiceOptions {
  readonly peers: Peers;
  readonly gate: Gate;
  /** Journals and refuses a call of a method that is not offered. */
  readonly refuse: (rpc: string, context: CallContext) => Promise<Failure>;
  /** Told of every unexpected exception: a bug, since handlers fail with FailureError. */
  readonly onBug: (rpc: string, error: unknown) => void;
}

type AnyFns = MessageFns<unknown>;

/** What requests that are being served have more than their contract; most have nothing, and are not in it. */
const unknownIn = new WeakMap<object, readonly UnknownField[]>();
const NO_FIELDS: readonly UnknownField[] = [];

/** Gives a reply, or the promise of one. */
type Unary = (request: unknown, context: CallContext) => unknown;
type Streaming = (
  requests: unknown,
  context: CallContext,
  send: (message: Reply<unknown>) => Promise<void>,
) => Promise<void>;

export function serviceOf<S extends ServiceShape>(
  shape: S,
  handlers: Handlers<S>,
  options: ServiceOptions,
): ServiceParts {
  const definition: Record<string, ServiceDefinition[string]> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const [key, method] of Object.entries(shape.methods)) {
    const responseType = method.responseType as AnyFns;
    const requestType = method.requestType as AnyFns;
    const path = `/${shape.fullName}/${method.name}`;
    const unknownFields = unknownFieldsIn(path);
    definition[key] = {
      path,
      requestStream: method.requestStream,
      responseStream: method.responseStream,
      requestSerialize: (message: unknown) => Buffer.from(requestType.encode(message).finish()),
      requestDeserialize: (bytes: Buffer) => {
        const request = requestType.decode(bytes);
        const unknown = unknownFields(bytes);
        if (unknown.length > 0) unknownIn.set(request as object, unknown);
        return request;
      },
      responseSerialize: (reply: Reply<unknown>) =>
        asBuffer(reply instanceof Uint8Array ? reply : responseType.encode(reply).finish()),
      responseDeserialize: (bytes: Buffer) => responseType.decode(bytes),
    };
    // The table's key ties definition and handler together; the compiler checked both when Handlers was written.
    const handler = handlers[key as keyof S['methods']] as unknown;
    implementation[key] = method.responseStream
      ? streaming(method.name, method.requestStream, handler as Streaming | undefined, options)
      : unary(method.name, handler as Unary | undefined, options);
  }
  return { name: shape.fullName, definition, implementation };
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function unary(
  rpc: string,
  handler: Unary | undefined,
  options: ServiceOptions,
): handleUnaryCall<unknown, Reply<unknown>> {
  return (call, callback) => {
    const context = contextOf(call, options);
    const leave = options.gate.enter();
    if (leave === null) return callback(status(ENDING));
    const answered = (reply: unknown): void => {
      callback(null, reply);
      leave();
    };
    const failed = (error: unknown): void => {
      callback(statusOf(rpc, error, options));
      leave();
    };
    let reply: unknown;
    try {
      reply = handler === undefined ? refusal(rpc, context, options) : handler(call.request, context);
    } catch (error) {
      return failed(error);
    }
    if (reply instanceof Promise) reply.then(answered, failed);
    else answered(reply);
  };
}

function streaming(rpc: string, isDuplex: boolean, handler: Streaming | undefined, options: ServiceOptions) {
  return (call: StreamCall): void => {
    const context = contextOf(call, options);
    // grpc-js answers with the status of an error event; a destroyed stream would answer nothing.
    const fail = (reason: Status): void => void call.emit('error', Object.assign(new Error(rpc), reason));
    const leave = options.gate.enter();
    if (leave === null) return fail(status(ENDING));
    const requests = isDuplex ? requestsOf(call, context) : call.request;
    const running =
      handler === undefined ? refusal(rpc, context, options) : handler(requests, context, senderTo(call, context));
    void running
      .then(
        () => void call.end(),
        (error: unknown) => fail(statusOf(rpc, error, options)),
      )
      .finally(leave);
  };
}

/**
 * What the client of a duplex call sends (its definition says that it is one), as a stream of its own: an iterator that
 * ends early destroys its stream, and the call's own has an answer to give yet.
 */
function requestsOf(call: StreamCall, context: CallContext): AsyncIterable<unknown> {
  const requests = new PassThrough({ objectMode: true });
  // Told to whoever reads; when nobody does, it is no news.
  requests.on('error', () => undefined);
  (call as unknown as Readable).pipe(requests);
  context.signal().addEventListener('abort', () => requests.destroy(new Error('The client has gone.')), { once: true });
  return requests;
}

/** A slow reader holds back its own stream and nothing else; what it has not read when it goes is dropped. */
function senderTo(call: StreamCall, context: CallContext): (message: Reply<unknown>) => Promise<void> {
  const signal = context.signal();
  return (message) => {
    if (signal.aborted || call.write(message)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        call.off('drain', done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      call.once('drain', done);
      signal.addEventListener('abort', done, { once: true });
    });
  };
}

async function refusal(rpc: string, context: CallContext, { refuse }: ServiceOptions): Promise<never> {
  const { reason, message } = await refuse(rpc, context);
  throw new FailureError(reason, message);
}

interface Status {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

/** Headers are bounded, and one that is too big would cost the client the whole status. */
const DETAILS_CHARACTERS_MAX = 4_096;

const status = (failure: Failure): Status => ({
  code: grpcCodeOf(failure),
  details: failure.message.slice(0, DETAILS_CHARACTERS_MAX).toWellFormed(),
  metadata: new Metadata(),
});

const ENDING: Failure = { reason: 'NotServing', message: DAEMON_ENDS };

function statusOf(rpc: string, error: unknown, { onBug }: ServiceOptions): Status {
  if (error instanceof FailureError) return status(error.failure);
  onBug(rpc, error);
  return status({ reason: 'Bug', message: `${rpc} failed unexpectedly; see the daemon's log.` });
}

type StreamCall = ServerWritableStream<unknown, Reply<unknown>>;
type AnyCall = ServerUnaryCall<unknown, unknown> | StreamCall;

const NS_PER_MS = 1_000_000n;
/**
 * Why a call's signal is aborted, which it also is once the call has been answered: made once, since the stack that each new
 * one would get takes longer to find than many a call.
 */
const CALLER_GONE = new DOMException('This operation was aborted', 'AbortError');

/** Of a client that streams its requests nothing is told. */
const unknownOf = (request: unknown): readonly UnknownField[] =>
  (typeof request === 'object' && request !== null ? unknownIn.get(request) : undefined) ?? NO_FIELDS;

function contextOf(call: AnyCall, { peers, gate }: ServiceOptions): CallContext {
  let abort: AbortController | null = null;
  return {
    caller: peers.callerAt(call.getPeer()),
    unknownFields: unknownOf(call.request),
    closing: gate.closing,
    deadlineNs() {
      const deadline = call.getDeadline();
      const ms = deadline instanceof Date ? deadline.getTime() : deadline;
      return Number.isFinite(ms) ? BigInt(Math.round(ms)) * NS_PER_MS : null;
    },
    traceParent() {
      const [sent] = call.metadata.get('traceparent');
      return typeof sent === 'string' ? (traceParentIn(sent)?.text ?? null) : null;
    },
    signal() {
      if (abort !== null) return abort.signal;
      const controller = new AbortController();
      abort = controller;
      if (call.cancelled) controller.abort(CALLER_GONE);
      else call.once('cancelled', () => controller.abort(CALLER_GONE));
      return controller.signal;
    },
  };
}
