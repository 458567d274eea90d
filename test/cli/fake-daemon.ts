/** A gRPC server on a socket of its own that answers as a test says, for commands that ask the daemon. */
import { join } from 'node:path';
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { type Image, ImageServiceDefinition } from '../../src/wire/cri/api.ts';
import {
  CompactJournalReply,
  DaemonDefinition,
  type DeepPartial,
  ListNriPluginsReply,
  StateReply,
} from '../../src/wire/scribe/v1/daemon.ts';
import {
  ImageProgress,
  ImagesDefinition,
  type LoadRequest,
  type PullRequest,
} from '../../src/wire/scribe/v1/images.ts';
import { type Owner, onCleanup } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

/** What an RPC ends with: a status other than OK. */
export interface Refusal {
  readonly code: number;
  readonly details: string;
}

export type Progress = DeepPartial<ImageProgress>;

export interface Answers {
  readonly state?: () => DeepPartial<StateReply>;
  readonly nriPlugins?: DeepPartial<ListNriPluginsReply>;
  readonly compactJournal?: () => Promise<DeepPartial<CompactJournalReply>>;
  readonly images?: readonly Image[];
  /** Sends progress; a Refusal that it returns is the status. */
  readonly pull?: (request: PullRequest, send: (progress: Progress) => void) => Promise<Refusal | null>;
  readonly load?: (requests: AsyncIterable<LoadRequest>, send: (progress: Progress) => void) => Promise<Refusal | null>;
}

export interface FakeDaemon {
  readonly socketPath: string;
}

interface Codec {
  readonly encode: (message: never) => { readonly finish: () => Uint8Array };
  readonly decode: (bytes: Buffer) => unknown;
}

interface Shape {
  readonly fullName: string;
  readonly methods: Readonly<
    Record<
      string,
      {
        readonly name: string;
        readonly requestType: Codec;
        readonly responseType: Codec;
        readonly requestStream: boolean;
        readonly responseStream: boolean;
      }
    >
  >;
}

const served = (shape: Shape, names: readonly string[]): ServiceDefinition =>
  Object.fromEntries(
    Object.entries(shape.methods)
      .filter(([key]) => names.includes(key))
      .map(([key, { name, requestType, responseType, requestStream, responseStream }]) => [
        key,
        {
          path: `/${shape.fullName}/${name}`,
          requestStream,
          responseStream,
          requestSerialize: (message: unknown) => Buffer.from(requestType.encode(message as never).finish()),
          requestDeserialize: (bytes: Buffer) => requestType.decode(bytes),
          responseSerialize: (message: unknown) => Buffer.from(responseType.encode(message as never).finish()),
          responseDeserialize: (bytes: Buffer) => responseType.decode(bytes),
        },
      ]),
  );

type Streaming = ServerWritableStream<PullRequest, ImageProgress> | ServerDuplexStream<LoadRequest, ImageProgress>;

const finish = (call: Streaming, work: Promise<Refusal | null>): void => {
  work.then(
    (refusal) => {
      if (refusal === null) call.end();
      else call.emit('error', { ...refusal, metadata: new Metadata() });
    },
    // A test that looks at a stream which the command has cut.
    () => undefined,
  );
};

/** Serves until its owner ends; what has no answer is not implemented. */
export const fakeDaemon = async (
  owner: Owner,
  { state, nriPlugins, compactJournal, images, pull, load }: Answers,
): Promise<FakeDaemon> => {
  const server = new Server();
  if (state !== undefined) {
    server.addService(served(DaemonDefinition, ['state']), {
      state: (_call: ServerUnaryCall<object, StateReply>, reply: sendUnaryData<StateReply>) =>
        reply(null, StateReply.fromPartial(state())),
    });
  }
  if (nriPlugins !== undefined) {
    server.addService(served(DaemonDefinition, ['listNriPlugins']), {
      listNriPlugins: (_call: unknown, reply: sendUnaryData<unknown>) =>
        reply(null, ListNriPluginsReply.fromPartial(nriPlugins)),
    });
  }
  if (compactJournal !== undefined) {
    server.addService(served(DaemonDefinition, ['compactJournal']), {
      compactJournal: (_call: unknown, reply: sendUnaryData<unknown>) =>
        void compactJournal().then((answer) => reply(null, CompactJournalReply.fromPartial(answer))),
    });
  }
  if (images !== undefined) {
    server.addService(served(ImageServiceDefinition, ['listImages']), {
      listImages: (_call: unknown, reply: sendUnaryData<unknown>) => reply(null, { images }),
    });
  }
  const sender = (call: Streaming) => (progress: Progress) => void call.write(ImageProgress.fromPartial(progress));
  if (pull !== undefined || load !== undefined) {
    server.addService(served(ImagesDefinition, ['pull', 'load']), {
      pull: (call: ServerWritableStream<PullRequest, ImageProgress>) =>
        finish(call, pull?.(call.request, sender(call)) ?? Promise.resolve(null)),
      load: (call: ServerDuplexStream<LoadRequest, ImageProgress>) =>
        finish(call, load?.(call, sender(call)) ?? Promise.resolve(null)),
    });
  }
  const socketPath = join(await tempDir(owner), 'daemon.sock');
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  onCleanup(owner, () => server.forceShutdown());
  return { socketPath };
};
