/**
 * A CRI client for scripts and tests: every method of RuntimeService and ImageService as a typed function, made from
 * the generated definitions. Must know nothing of scribe: it talks to any CRI runtime.
 */
import { type ClientReadableStream, type ServiceError, Client, Metadata, credentials } from '@grpc/grpc-js';
import { type DeepPartial, ImageServiceDefinition, RuntimeServiceDefinition } from '../../src/wire/cri/api.ts';

export interface CallOptions {
  /** The call fails with DEADLINE_EXCEEDED after this; two minutes unless told, as the kubelet does. */
  readonly timeoutMs?: number;
  /** Cancels the call. */
  readonly signal?: AbortSignal;
  /** Headers of the call. */
  readonly metadata?: Readonly<Record<string, string>>;
}

type MessageOf<Codec> = Codec extends { decode: (input: Uint8Array) => infer Message } ? Message : never;
type Request<Method> = Method extends { requestType: infer Codec } ? DeepPartial<MessageOf<Codec>> : never;
type Response<Method> = Method extends { responseType: infer Codec } ? MessageOf<Codec> : never;

type ServiceClient<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends { responseStream: true }
    ? (request?: Request<Methods[Name]>, options?: CallOptions) => AsyncIterable<Response<Methods[Name]>>
    : (request?: Request<Methods[Name]>, options?: CallOptions) => Promise<Response<Methods[Name]>>;
};

export type RuntimeClient = ServiceClient<(typeof RuntimeServiceDefinition)['methods']>;
export type ImageClient = ServiceClient<(typeof ImageServiceDefinition)['methods']>;

export interface CriClient {
  readonly runtime: RuntimeClient;
  readonly image: ImageClient;
  readonly close: () => void;
}

/** A generated method, seen without its message types. */
interface Method {
  readonly name: string;
  readonly requestType: {
    readonly fromPartial: (request: object) => object;
    readonly encode: (request: object) => { readonly finish: () => Uint8Array };
  };
  readonly responseType: { readonly decode: (bytes: Uint8Array) => object };
  readonly responseStream: boolean;
}

const defaultTimeoutMs = 120_000;

/** As the kubelet's: a bigger message fails. */
const messageBytesMax = 16 * 1024 * 1024;

const metadataOf = (headers: CallOptions['metadata']): Metadata => {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers ?? {})) metadata.set(name, value);
  return metadata;
};

const unary =
  (client: Client, path: string, method: Method) =>
  (request: object = {}, { timeoutMs = defaultTimeoutMs, signal, metadata }: CallOptions = {}): Promise<object> =>
    new Promise((resolve, reject) => {
      const call = client.makeUnaryRequest<object, object>(
        path,
        (message) => Buffer.from(method.requestType.encode(message).finish()),
        (bytes) => method.responseType.decode(bytes),
        method.requestType.fromPartial(request),
        metadataOf(metadata),
        { deadline: Date.now() + timeoutMs },
        (error, response) => {
          signal?.removeEventListener('abort', cancel);
          if (error !== null) reject(error);
          else resolve(response ?? {});
        },
      );
      const cancel = (): void => call.cancel();
      signal?.addEventListener('abort', cancel);
    });

const serverStream = (client: Client, path: string, method: Method) =>
  async function* (request: object = {}, { timeoutMs, signal, metadata }: CallOptions = {}): AsyncGenerator<object> {
    const call: ClientReadableStream<object> = client.makeServerStreamRequest<object, object>(
      path,
      (message) => Buffer.from(method.requestType.encode(message).finish()),
      (bytes) => method.responseType.decode(bytes),
      method.requestType.fromPartial(request),
      metadataOf(metadata),
      timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs },
    );
    const cancel = (): void => call.cancel();
    signal?.addEventListener('abort', cancel);
    try {
      yield* call as AsyncIterable<object>;
    } finally {
      signal?.removeEventListener('abort', cancel);
      call.cancel();
    }
  };

const serviceClient = (
  client: Client,
  definition: { readonly fullName: string; readonly methods: Readonly<Record<string, unknown>> },
): unknown =>
  Object.fromEntries(
    Object.entries(definition.methods).map(([name, described]) => {
      const method = described as Method;
      const path = `/${definition.fullName}/${method.name}`;
      return [name, method.responseStream ? serverStream(client, path, method) : unary(client, path, method)];
    }),
  );

/** Connects to the CRI socket at this absolute path. Calls reject with grpc-js's ServiceError (`code`, `details`). */
export const criClient = (socketPath: string): CriClient => {
  const client = new Client(`unix:${socketPath}`, credentials.createInsecure(), {
    'grpc.max_receive_message_length': messageBytesMax,
    'grpc.initial_reconnect_backoff_ms': 20,
    'grpc.min_reconnect_backoff_ms': 20,
    'grpc.max_reconnect_backoff_ms': 200,
    'grpc.use_local_subchannel_pool': 1,
  });
  return {
    runtime: serviceClient(client, RuntimeServiceDefinition) as RuntimeClient,
    image: serviceClient(client, ImageServiceDefinition) as ImageClient,
    close: () => client.close(),
  };
};

/** The gRPC status code of an error that a call rejected with; undefined for any other error. */
export const codeOf = (error: unknown): number | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'number'
    ? (error as ServiceError).code
    : undefined;
