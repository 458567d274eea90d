/**
 * Typed unary methods over ttrpc: joins the service definitions of the generated code to the untyped client and server.
 */
import { GrpcCode } from '../../domain/model/errors.ts';
import type { CallOptions, TtrpcClient } from './client.ts';
import type { MethodHandler, TtrpcCallContext } from './server.ts';
import { TtrpcGarbageError, TtrpcStatusError } from './status.ts';

/** The part of a generated message type that is needed here. */
export interface MessageCodec<T> {
  readonly encode: (message: T) => { readonly finish: () => Uint8Array };
  readonly decode: (input: Uint8Array) => T;
}

/** A method as the generated service definitions describe it. */
export interface MethodDefinition<Request, Response> {
  /** As it goes over the wire: Create, not create. */
  readonly name: string;
  readonly requestType: MessageCodec<Request>;
  readonly responseType: MessageCodec<Response>;
}

const decodeAs = <T>(codec: Pick<MessageCodec<T>, 'decode'>, bytes: Uint8Array, failure: (why: string) => Error): T => {
  try {
    return codec.decode(bytes);
  } catch (error) {
    throw failure(`cannot be decoded: ${error instanceof Error ? error.message : 'garbage'}`);
  }
};

/** A method as it is called: its requests are only encoded. */
export interface CalledMethod<Request, Response> {
  readonly name: string;
  readonly requestType: Pick<MessageCodec<Request>, 'encode'>;
  readonly responseType: Pick<MessageCodec<Response>, 'decode'>;
}

/** Calls a method. An answer that can't be decoded rejects with TtrpcGarbageError. */
export const callMethod = async <Request, Response>(
  client: TtrpcClient,
  service: string,
  method: CalledMethod<Request, Response>,
  request: Request,
  options: CallOptions,
): Promise<Response> => {
  const payload = await client.call(service, method.name, method.requestType.encode(request).finish(), options);
  const failure = (why: string): Error => new TtrpcGarbageError(`the answer to ${service}/${method.name} ${why}`);
  return decodeAs(method.responseType, payload, failure);
};

/** Makes a server's handler from a typed function; requests that can't be decoded are answered INVALID_ARGUMENT. */
export const handleMethod =
  <Request, Response>(
    method: MethodDefinition<Request, Response>,
    handle: (request: Request, context: TtrpcCallContext) => Promise<Response>,
  ): MethodHandler =>
  async (payload, context) => {
    const request = decodeAs(
      method.requestType,
      payload,
      (why) => new TtrpcStatusError(GrpcCode.INVALID_ARGUMENT, `the request to ${method.name} ${why}`),
    );
    return method.responseType.encode(await handle(request, context)).finish();
  };
