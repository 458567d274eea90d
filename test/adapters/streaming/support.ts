/** A streaming server of the real kind, with a backend whose "containers" are functions in this process. */
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createStreamingServer, type StreamingServerOptions } from '../../../src/adapters/streaming/server.ts';
import type {
  AttachRequest,
  ExecRequest,
  SessionStreams,
  PortForwardRequest,
  StreamingBackend,
  StreamingRequest,
  StreamingServer,
  TerminalSize,
} from '../../../src/adapters/streaming/types.ts';
import { createTokens } from '../../../src/adapters/streaming/tokens.ts';
import { urlOf } from '../../../src/adapters/streaming/urls.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';

const never = (): Promise<never> => Promise.reject(new FailureError('Bug', 'no test asked for this'));

export interface TestServer extends StreamingServer {
  readonly urlFor: (request: StreamingRequest) => string;
}

export interface StartedServer {
  readonly server: TestServer;
  readonly warnings: readonly string[];
}

export interface TestServerOptions extends Omit<StreamingServerOptions, 'redeem'> {
  readonly nowMs: () => number;
}

/** The server and its tokens together. */
export const openServer = async ({
  nowMs = () => performance.now(),
  backend = {},
  ...options
}: Partial<Omit<TestServerOptions, 'backend'>> & {
  readonly backend?: Partial<StreamingBackend>;
}): Promise<TestServer> => {
  const tokens = createTokens(nowMs);
  const server = await createStreamingServer({
    address: '127.0.0.1',
    port: 0,
    tls: null,
    backend: { exec: never, attach: never, portForward: never, ...backend },
    redeem: (named) => Promise.resolve(tokens.redeem(named)),
    idleTimeoutMs: 60_000,
    streamCreationTimeoutMs: 10_000,
    log: { warn: () => undefined },
    onVacant: () => undefined,
    ...options,
  });
  const urlFor = (request: StreamingRequest): string =>
    urlOf(server.baseUrl, { kind: request.kind, token: tokens.issue(request) });
  return { ...server, urlFor };
};

export const startServer = async (
  owner: Owner,
  backend: Partial<StreamingBackend> = {},
  options: Partial<Omit<TestServerOptions, 'backend'>> = {},
): Promise<StartedServer> => {
  const warnings: string[] = [];
  const log = {
    warn: (message: string) => {
      warnings.push(message);
    },
  };
  const server = await openServer({ backend, log, ...options });
  onCleanup(owner, () => server.close());
  return { server, warnings };
};

const allowed = { allowedBy: 'call', caller: null };

export const portForwardRequest = (ports: readonly number[] = []): PortForwardRequest => ({
  kind: 'PortForward',
  podSandboxId: 'pod',
  ports,
  ...allowed,
});

/** An Exec of a command with the streams that are named: 'stdin stdout'. */
export const execRequest = (cmd: readonly string[], streams: string): ExecRequest => ({
  kind: 'Exec',
  containerId: 'container',
  cmd,
  ...allowed,
  ...wanted(streams),
});

export const attachRequest = (streams: string): AttachRequest => ({
  kind: 'Attach',
  containerId: 'container',
  ...allowed,
  ...wanted(streams),
});

const wanted = (streams: string) => ({
  tty: streams.includes('tty'),
  stdin: streams.includes('stdin'),
  stdout: streams.includes('stdout'),
  stderr: streams.includes('stderr'),
});

/** Bytes that no compression or repetition explains: `sizeBytes` of one random block again and again. */
export function* randomOutput(sizeBytes: number): Generator<Buffer> {
  const block = randomBytes(65_521);
  for (let left = sizeBytes; left > 0; left -= block.length) yield block.subarray(0, left);
}

const say = (stream: Writable | null, text: string): void => {
  stream?.write(text);
};

/** Sizes as they are heard, until `count` of them. */
const hearSizes = (streams: SessionStreams, count: number): Promise<readonly TerminalSize[]> =>
  new Promise((resolve) => {
    const heard: TerminalSize[] = [];
    streams.onResize((size) => {
      heard.push(size);
      if (heard.length === count) resolve(heard);
    });
  });

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

const copy = async (from: Readable | null, to: Writable | null): Promise<void> => {
  if (from !== null && to !== null) await pipeline(from, to);
};

/** A shell of very few words. */
export const shell: StreamingBackend['exec'] = async ({ cmd }, streams) => {
  const [name, argument = ''] = cmd;
  switch (name) {
    case 'cat':
      await copy(streams.stdin, streams.stdout);
      return { exitCode: 0 };
    case 'both':
      say(streams.stdout, 'to stdout');
      say(streams.stderr, 'to stderr');
      return { exitCode: 0 };
    case 'exit':
      say(streams.stdout, 'before the end');
      return { exitCode: Number(argument) };
    case 'sizes':
      say(streams.stdout, JSON.stringify(await hearSizes(streams, Number(argument))));
      return { exitCode: 0 };
    case 'sleep':
      await aborted(streams.signal);
      return { exitCode: 137 };
    default:
      throw new FailureError('ContainerNotFound', `no such program: ${typeof name === 'string' ? name : ''}`);
  }
};
