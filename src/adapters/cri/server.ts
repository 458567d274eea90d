/**
 * The CRI socket: accepts connections, learns who they are, and serves RuntimeService, ImageService, health,
 * reflection and scribe's own services on them. The socket is 0660; whoever may open it may do all.
 */
import { chmod, chown, rm } from 'node:fs/promises';
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import type { Failure } from '../../domain/model/errors.ts';
import { makeDirectories } from '../../platform/linux/make-directories.ts';
import { orAfter } from '../../platform/rpc/timeout.ts';
import { ImageServiceDefinition, RuntimeServiceDefinition } from '../../wire/cri/api.ts';
import { HealthDefinition } from '../../wire/grpc/health/v1/health.ts';
import { ServerReflectionDefinition } from '../../wire/grpc/reflection/v1/reflection.ts';
import type { CallContext } from './context.ts';
import { healthService } from './services/health.ts';
import { imageService } from './services/image-service.ts';
import { optionsOf } from './calls.ts';
import type { CriParts } from './parts.ts';
import { createGate } from './calls-under-way.ts';
import { createPeers } from './peers.ts';
import { refusedForSize } from './refused-for-size.ts';
import { reflectionService, ServerReflectionAlphaDefinition } from './services/reflection.ts';
import { runtimeService } from './services/runtime-service.ts';
import { type ServiceOptions, type ServiceParts, serviceOf } from './service.ts';

/** Streams one connection may have open; more wait, so that no client takes the daemon alone. */
const STREAMS_MAX = 1_000;

export interface CriServerOptions {
  readonly socketPath: string;
  readonly socketMode: number;
  /** Group that may use the socket; null leaves the daemon's own. */
  readonly socketGid: number | null;
  readonly parts: CriParts;
  /** Further services (loading images, the daemon's own questions). */
  readonly services?: (options: ServiceOptions) => readonly ServiceParts[];
  readonly onBug: (rpc: string, error: unknown) => void;
}

export interface CriServer {
  /** Settles when the listener ended by itself: without it the daemon is useless (C20). */
  readonly ended: Promise<Error>;
  /**
   * Takes no more calls, ends what only follows events, and gives calls under way so much time; resolves with how many
   * did not come to their end.
   */
  readonly drain: (timeoutMs: number) => Promise<number>;
  /** Answers that are there still leave, for a moment; all else is cut off. */
  readonly close: () => Promise<void>;
}

/** For answers on their way to a client that reads. */
const LAST_ANSWERS_MS = 500;

export async function startCriServer(options: CriServerOptions): Promise<CriServer> {
  const { parts, socketPath } = options;
  const peers = createPeers();
  const gate = createGate();
  const server = new Server({
    'grpc.max_receive_message_length': parts.messageBytesMax,
    'grpc.max_send_message_length': parts.messageBytesMax,
    'grpc.max_concurrent_streams': STREAMS_MAX,
    'grpc.enable_channelz': 0,
    interceptors: [
      refusedForSize(async (rpc, peer) => {
        const message = `The request is larger than ${parts.messageBytesMax} bytes: nothing of it was read.`;
        const draft = { method: 'Refused', rpc, failure: { reason: 'TooLarge', message } } as const;
        await parts.submit(draft, { caller: peers.callerAt(peer), deadlineNs: null });
      }),
    ],
  });
  const serviceOptions: ServiceOptions = {
    peers,
    gate,
    refuse: (rpc, context) => refuse(parts, rpc, context),
    onBug: options.onBug,
  };
  const services: readonly ServiceParts[] = [
    serviceOf(RuntimeServiceDefinition, runtimeService(parts), serviceOptions),
    serviceOf(ImageServiceDefinition, imageService(parts), serviceOptions),
    ...(options.services?.(serviceOptions) ?? []),
    serviceOf(HealthDefinition, healthService(names), serviceOptions),
    serviceOf(ServerReflectionDefinition, reflectionService(names), serviceOptions),
    // Which of the two definitions is meant is not left to the compiler: it decides by the order of files.
    serviceOf<typeof ServerReflectionAlphaDefinition>(
      ServerReflectionAlphaDefinition,
      reflectionService(names),
      serviceOptions,
    ),
  ];
  function names(): readonly string[] {
    return services.map(({ name }) => name);
  }
  for (const { definition, implementation } of services) server.addService(definition, implementation);

  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    peers.admit(socket).then(
      () => injector.injectConnection(socket),
      () => socket.destroy(),
    );
  });
  await listen(listener, options);
  return {
    ended: new Promise((resolve) => {
      listener.once('error', resolve);
    }),
    drain: gate.close,
    async close() {
      listener.removeAllListeners('error');
      const closed = new Promise<void>((resolve) => {
        listener.close(() => resolve());
      });
      // Whoever is answered already has nothing to wait for, and goes by himself.
      injector.destroy();
      await orAfter(closed, LAST_ANSWERS_MS, undefined);
      for (const socket of sockets) socket.destroy();
      await closed;
      server.forceShutdown();
      await rm(socketPath, { force: true });
    },
  };
}

async function refuse(parts: CriParts, rpc: string, context: CallContext): Promise<Failure> {
  const { outcome } = await parts.submit({ method: 'Unimplemented', rpc }, optionsOf(context));
  return outcome.ok ? { reason: 'NotImplemented', message: `${rpc} is not offered.` } : outcome.failure;
}

/** The daemon's umask keeps all but root out until owner and mode are right. */
async function listen(listener: NetServer, { socketPath, socketMode, socketGid }: CriServerOptions): Promise<void> {
  await makeDirectories(dirname(socketPath), 0o711);
  await rm(socketPath, { force: true });
  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject);
    listener.listen(socketPath, () => {
      listener.removeListener('error', reject);
      resolve();
    });
  });
  try {
    if (socketGid !== null) await chown(socketPath, 0, socketGid);
    await chmod(socketPath, socketMode);
  } catch (error) {
    listener.close();
    throw error;
  }
}
