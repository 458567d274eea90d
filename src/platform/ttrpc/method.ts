/**
 * Typed unary methods over ttrpc: joins the service definitions of the generated code to the untyped client and server.
 */
import { GrpcCode } from '../../domain/model/errors.ts';
import type { CallOptions, TtrpcClient } from './client.ts';
import type { MethodHandler, TtrpcCallContext } from './server.ts';
import { TtrpcStatusError } from './status.ts';

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

const decodeAs = <T>(codec: MessageCodec<T>, bytes: Uint8Array, code: GrpcCode, what: string): T => {
  try {
    return codec.decode(bytes);
  } catch (error) {
    throw new TtrpcStatusError(
      code,
      `${what} can not be decoded: ${error instanceof Error ? error.message : 'garbage'}`,
    );
  }
};

/** Calls a method. An answer that can't be decoded rejects with TtrpcStatusError (INTERNAL), as any failed call does. */
export const callMethod = async <Request, Response>(
  client: TtrpcClient,
  service: string,
  method: MethodDefinition<Request, Response>,
  request: Request,
  options: CallOptions,
): Promise<Response> => {
  const payload = await client.call(service, method.name, method.requestType.encode(request).finish(), options);
  return decodeAs(method.responseType, payload, GrpcCode.INTERNAL, `the answer to ${service}/${method.name}`);
};

/** Makes a server's handler from a typed function; requests that can't be decoded are answered INVALID_ARGUMENT. */
export const handleMethod =
  <Request, Response>(
    method: MethodDefinition<Request, Response>,
    handle: (request: Request, context: TtrpcCallContext) => Promise<Response>,
  ): MethodHandler =>
  async (payload, context) => {
    const request = decodeAs(method.requestType, payload, GrpcCode.INVALID_ARGUMENT, `the request to ${method.name}`);
    return method.responseType.encode(await handle(request, context)).finish();
  };
