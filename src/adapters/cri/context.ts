/** What every RPC handler is given besides its request, and how handlers are typed by the generated definitions. */
import { FailureError } from '../../domain/model/errors.ts';
import type { Caller } from '../../domain/model/records.ts';
import type { UnknownField } from '../../domain/model/unknown-fields.ts';
import type { MessageFns } from '../../wire/cri/api.ts';

export interface CallContext {
  readonly caller: Caller | null;
  /** Wall clock, ns; null when the client set none. */
  readonly deadlineNs: () => bigint | null;
  /** The client's span, as the W3C's traceparent header has it; null when it sent none, or none that is well made. */
  readonly traceParent: () => string | null;
  /** What the request has more than the contract knows. */
  readonly unknownFields: readonly UnknownField[];
  /** Aborted when the client has cancelled or gone. Made when it is first asked for: most reads answer at once. */
  readonly signal: () => AbortSignal;
  /** Aborted when the daemon begins to end: calls under way have some time left, followers end at once. */
  readonly closing: AbortSignal;
}

/** Runs what only follows events until the client goes; a daemon that ends tells the client so. */
export async function following(
  { signal, closing }: CallContext,
  follow: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const client = signal();
  await follow(AbortSignal.any([client, closing]));
  if (closing.aborted && !client.aborted) throw new FailureError('NotServing', DAEMON_ENDS);
}

export const DAEMON_ENDS = 'The daemon is ending; try again in a moment.';

type MessageOf<F> = F extends MessageFns<infer T> ? T : never;

interface MethodDefinition {
  readonly name: string;
  readonly requestType: unknown;
  readonly responseType: unknown;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

export interface ServiceShape {
  readonly fullName: string;
  readonly methods: Readonly<Record<string, MethodDefinition>>;
}

/** A reply is a message, or that message already encoded. */
export type Reply<T> = T | Uint8Array;

export type UnaryHandler<M extends MethodDefinition> = (
  request: MessageOf<M['requestType']>,
  context: CallContext,
) => Promise<Reply<MessageOf<M['responseType']>>> | Reply<MessageOf<M['responseType']>>;

/** Sends messages until the context's signal is aborted; resolves when the stream is over. */
export type StreamHandler<M extends MethodDefinition> = (
  request: MessageOf<M['requestType']>,
  context: CallContext,
  send: (message: Reply<MessageOf<M['responseType']>>) => Promise<void>,
) => Promise<void>;

/** As StreamHandler, with a stream of requests: it ends when the client has sent all. */
export type DuplexHandler<M extends MethodDefinition> = (
  requests: AsyncIterable<MessageOf<M['requestType']>>,
  context: CallContext,
  send: (message: Reply<MessageOf<M['responseType']>>) => Promise<void>,
) => Promise<void>;

/** Handlers of the methods a service offers; the others answer Unimplemented. */
export type Handlers<S extends ServiceShape> = {
  readonly [K in keyof S['methods']]?: S['methods'][K]['responseStream'] extends true
    ? S['methods'][K]['requestStream'] extends true
      ? DuplexHandler<S['methods'][K]>
      : StreamHandler<S['methods'][K]>
    : UnaryHandler<S['methods'][K]>;
};
