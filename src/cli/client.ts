/**
 * Speaks gRPC to the daemon over its socket: the three kinds of call that commands make. Errors become sentences for
 * the person at the terminal. Must know no service by name.
 */
import { type CallOptions, type ClientDuplexStream, Client, credentials, Metadata } from '@grpc/grpc-js';
import { GrpcCode } from '../domain/model/errors.ts';
import { CliError, failure } from './command.ts';
import { whyUnreachable } from './reachable.ts';

const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

interface Codec<T> {
  readonly encode: (message: T) => { readonly finish: () => Uint8Array };
  readonly decode: (bytes: Uint8Array) => T;
}

/** A service and a method of it, as generated. */
export interface Service {
  readonly fullName: string;
}

export interface Method<Request, Response> {
  readonly name: string;
  readonly requestType: Codec<Request>;
  readonly responseType: Codec<Response>;
}

export interface Daemon {
  /** Rejects with DEADLINE_EXCEEDED after `timeoutMs`. */
  readonly call: <Q, R>(service: Service, method: Method<Q, R>, request: Q, timeoutMs: number) => Promise<R>;
  readonly serverStream: <Q, R>(service: Service, method: Method<Q, R>, request: Q) => AsyncIterable<R>;
  /** Sends all requests while it receives. */
  readonly duplex: <Q, R>(service: Service, method: Method<Q, R>, requests: AsyncIterable<Q>) => AsyncIterable<R>;
  readonly close: () => void;
}

/** A failed call; `code` is its gRPC status. */
export class RemoteError extends CliError {
  readonly code: number;
  constructor(code: number, message: string) {
    super(1, message);
    this.code = code;
  }
}

const CODE_NAMES = new Map<number, string>(Object.entries(GrpcCode).map(([name, code]) => [code, name]));

const remoteError = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('code' in error) || !('details' in error)) return error;
  const { code, details } = error as { readonly code: number; readonly details: string };
  return new RemoteError(code, `${details} (${CODE_NAMES.get(code) ?? code})`);
};

const encoder =
  <T>({ encode }: Codec<T>) =>
  (message: T): Buffer =>
    Buffer.from(encode(message).finish());

const decoder =
  <T>({ decode }: Codec<T>) =>
  (bytes: Buffer): T =>
    decode(bytes);

/** Received messages; leaving the loop early cancels the call. */
async function* received<R>(call: AsyncIterable<unknown> & { readonly cancel: () => void }): AsyncGenerator<R> {
  try {
    for await (const message of call) yield message as R;
  } catch (error) {
    throw remoteError(error);
  } finally {
    call.cancel();
  }
}

/** Writes as fast as they are taken, until the call is over. */
const feed = async <Q, R>(call: ClientDuplexStream<Q, R>, requests: AsyncIterable<Q>): Promise<void> => {
  const life = { isOver: false };
  const ended = new Promise<void>((resolve) => {
    call.once('close', resolve).once('error', () => resolve());
  }).then(() => {
    life.isOver = true;
  });
  for await (const request of requests) {
    if (life.isOver) return;
    if (!call.write(request)) await Promise.race([ended, new Promise((resolve) => call.once('drain', resolve))]);
  }
  call.end();
};

/** Connects to the daemon whose socket this is; rejects with a sentence when nobody listens there. */
export const connectDaemon = async (socketPath: string): Promise<Daemon> => {
  const why = await whyUnreachable(socketPath);
  if (why !== null) {
    const remedy = 'Start it with "scribe serve", or name its socket with --socket.';
    throw failure(`There is no daemon at ${socketPath}: ${why}. ${remedy}`);
  }
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.use_local_subchannel_pool': 1,
  });
  const pathOf = (service: Service, { name }: { readonly name: string }): string => `/${service.fullName}/${name}`;

  return {
    call: (service, method, request, timeoutMs) =>
      new Promise((resolve, reject) => {
        const options: CallOptions = { deadline: Date.now() + timeoutMs };
        client.makeUnaryRequest(
          pathOf(service, method),
          encoder(method.requestType),
          decoder(method.responseType),
          request,
          new Metadata(),
          options,
          (error, response) => {
            if (error !== null) reject(remoteError(error));
            else if (response === undefined) reject(failure(`${method.name} was answered with nothing.`));
            else resolve(response);
          },
        );
      }),
    serverStream: (service, method, request) =>
      received(
        client.makeServerStreamRequest(
          pathOf(service, method),
          encoder(method.requestType),
          decoder(method.responseType),
          request,
        ),
      ),
    duplex: async function* <Q, R>(service: Service, method: Method<Q, R>, requests: AsyncIterable<Q>) {
      const call = client.makeBidiStreamRequest(
        pathOf(service, method),
        encoder(method.requestType),
        decoder(method.responseType),
      );
      // What can't be read here is the reason why the call ended, not what the daemon says of its end.
      const unreadable: unknown[] = [];
      const feeding = feed(call, requests).catch((error: unknown) => {
        unreadable.push(error);
        call.cancel();
      });
      try {
        yield* received<R>(call);
      } catch (error) {
        throw unreadable.length > 0 ? unreadable[0] : error;
      }
      await feeding;
    },
    close: () => client.close(),
  };
};
