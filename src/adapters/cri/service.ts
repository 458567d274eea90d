/**
 * From a generated service definition and its handlers to what grpc-js serves. Every method of the contract is there:
 * one without a handler is refused and journaled. Replies may come already encoded. Knows no method by name.
 */
import {
  type handleUnaryCall,
  Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { type Failure, FailureError, grpcCodeOf } from '../../domain/errors.ts';
import type { MessageFns } from '../wire/cri/api.ts';
import type { CallContext, Handlers, Reply, ServiceShape } from './context.ts';
import type { Peers } from './peers.ts';

export interface ServiceParts {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

export interface ServiceOptions {
  readonly peers: Peers;
  /** Journals and refuses a call of a method that is not offered. */
  readonly refuse: (rpc: string, context: CallContext) => Promise<Failure>;
  /** Told of every unexpected exception: a bug, since handlers fail with FailureError. */
  readonly onBug: (rpc: string, error: unknown) => void;
}

type AnyFns = MessageFns<unknown>;
type Unary = (request: unknown, context: CallContext) => Promise<Reply<unknown>> | Reply<unknown>;
type Streaming = (requests: unknown, context: CallContext, send: (message: Reply<unknown>) => Promise<void>) => Promise<void>;

export function serviceOf<S extends ServiceShape>(shape: S, handlers: Handlers<S>, options: ServiceOptions): ServiceParts {
  const definition: Record<string, ServiceDefinition[string]> = {};
  const implementation: UntypedServiceImplementation = {};
  for (const [key, method] of Object.entries(shape.methods)) {
    const responseType = method.responseType as AnyFns;
    const requestType = method.requestType as AnyFns;
    definition[key] = {
      path: `/${shape.fullName}/${method.name}`,
      requestStream: method.requestStream,
      responseStream: method.responseStream,
      requestSerialize: (message: unknown) => Buffer.from(requestType.encode(message).finish()),
      requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
      responseSerialize: (reply: Reply<unknown>) => asBuffer(reply instanceof Uint8Array ? reply : responseType.encode(reply).finish()),
      responseDeserialize: (bytes: Buffer) => responseType.decode(bytes),
    };
    // The table's key ties definition and handler together; the compiler checked both when Handlers was written.
    const handler = handlers[key as keyof S['methods']] as unknown;
    implementation[key] = method.responseStream
      ? streaming(method.name, method.requestStream, handler as Streaming | undefined, options)
      : unary(method.name, handler as Unary | undefined, options);
  }
  return { definition, implementation };
}

const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function unary(rpc: string, handler: Unary | undefined, options: ServiceOptions): handleUnaryCall<unknown, Reply<unknown>> {
  return (call, callback) => {
    const context = contextOf(call, options.peers);
    const fail = (error: unknown): void => callback(statusOf(rpc, error, options));
    try {
      const reply = handler === undefined ? refusal(rpc, context, options) : handler(call.request, context);
      if (reply instanceof Promise) reply.then((message: Reply<unknown>) => callback(null, message), fail);
      else callback(null, reply);
    } catch (error) {
      fail(error);
    }
  };
}

function streaming(rpc: string, isDuplex: boolean, handler: Streaming | undefined, options: ServiceOptions) {
  return (call: ServerWritableStream<unknown, Reply<unknown>>): void => {
    const context = contextOf(call, options.peers);
    const send = (message: Reply<unknown>): Promise<void> =>
      new Promise((resolve) => {
        if (context.signal.aborted || call.write(message)) return resolve();
        // A slow reader holds back its own stream and nothing else.
        call.once('drain', resolve);
        context.signal.addEventListener('abort', () => resolve(), { once: true });
      });
    const running = handler === undefined ? refusal(rpc, context, options) : handler(isDuplex ? call : call.request, context, send);
    running.then(
      () => call.end(),
      (error: unknown) => call.destroy(Object.assign(new Error(rpc), statusOf(rpc, error, options))),
    );
  };
}

async function refusal(rpc: string, context: CallContext, { refuse }: ServiceOptions): Promise<never> {
  const { reason, message } = await refuse(rpc, context);
  throw new FailureError(reason, message);
}

function statusOf(rpc: string, error: unknown, { onBug }: ServiceOptions): { code: number; details: string; metadata: Metadata } {
  if (error instanceof FailureError) return { code: grpcCodeOf(error.failure), details: error.failure.message, metadata: new Metadata() };
  onBug(rpc, error);
  return { code: grpcCodeOf({ reason: 'Bug', message: '' }), details: `${rpc} failed unexpectedly; see the daemon's log.`, metadata: new Metadata() };
}

type AnyCall = ServerUnaryCall<unknown, unknown> | ServerWritableStream<unknown, unknown>;

const NS_PER_MS = 1_000_000n;

function contextOf(call: AnyCall, peers: Peers): CallContext {
  let abort: AbortController | null = null;
  return {
    caller: peers.callerAt(call.getPeer()),
    get deadlineNs() {
      const deadline = call.getDeadline();
      const ms = deadline instanceof Date ? deadline.getTime() : deadline;
      return Number.isFinite(ms) ? BigInt(Math.round(ms)) * NS_PER_MS : null;
    },
    // Made only where somebody asks for it: most reads answer at once.
    get signal() {
      if (abort === null) {
        const controller = new AbortController();
        abort = controller;
        if (call.cancelled) controller.abort();
        else call.once('cancelled', () => controller.abort());
      }
      return abort.signal;
    },
  };
}
