/** A streaming server of the real kind with a backend made for the test. */
import { createStreamingServer, type StreamingServerOptions } from '../../../src/adapters/streaming/server.ts';
import type { StreamingBackend, StreamingServer } from '../../../src/adapters/streaming/types.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';

const never = (): Promise<never> => Promise.reject(new Error('no test asked for this'));

export const startServer = async (
  owner: Owner,
  backend: Partial<StreamingBackend> = {},
  options: Partial<StreamingServerOptions> = {},
): Promise<{ readonly server: StreamingServer }> => {
  const server = await createStreamingServer({
    address: '127.0.0.1',
    port: 0,
    tls: null,
    backend: { exec: never, attach: never, portForward: never, ...backend },
    idleTimeoutMs: 60_000,
    streamCreationTimeoutMs: 10_000,
    log: { warn: () => undefined },
    nowMs: () => performance.now(),
    ...options,
  });
  onCleanup(owner, () => server.close());
  return { server };
};
