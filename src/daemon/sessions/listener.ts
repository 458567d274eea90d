/**
 * Hands out the URLs of sessions, and is the daemon's side of the thread that clients then come to: starts it when it is
 * first needed, keeps the tokens, and makes each session's call. When the thread ends, its sessions have lost their
 * clients, and the next URL starts another.
 */
import { Worker } from 'node:worker_threads';
import { createTokens, type Tokens } from '../../adapters/streaming/tokens.ts';
import type { StreamingRequest } from '../../adapters/streaming/types.ts';
import { urlOf } from '../../adapters/streaming/urls.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { orAfter, unlessAborted } from '../../platform/rpc/timeout.ts';
import type { SessionCalls } from './calls.ts';
import { carried, type FromThread, type SessionSubject, type ToThread } from './messages.ts';
import { createRemoteClients } from './remote-clients.ts';
import type { ThreadOptions } from './thread.ts';

export interface SessionListenerOptions {
  readonly server: ThreadOptions;
  readonly calls: SessionCalls;
  readonly nowMs: () => number;
  readonly log: { readonly warn: (message: string) => void; readonly error: (message: string) => void };
}

export interface SessionListener {
  /** Listens from now on instead of from the first URL on. Rejects when the address is taken, say. */
  readonly start: () => Promise<void>;
  /** The address of a session, good once and for a minute. Rejects when too many wait to be used. */
  readonly urlFor: (request: StreamingRequest) => Promise<string>;
  /** Ends all sessions, telling their clients why, and stops listening. */
  readonly close: () => Promise<void>;
}

/** Bounds what a thread takes that is gone wrong: then it ends, and the daemon does not. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/** What clients leave behind when they go has so long to be written down. */
const ENDS_MS = 1_000;

interface Thread {
  readonly baseUrl: Promise<string>;
  readonly close: () => Promise<void>;
}

const cannotListen = ({ address, port, tls }: ThreadOptions, why: string): FailureError => {
  const keys = [
    'streaming.address',
    'streaming.port',
    ...(tls === null ? [] : ['streaming.tls_cert', 'streaming.tls_key']),
  ];
  const message = `The streaming server cannot listen at ${address}, port ${port}: ${why}. It is configured by ${keys.join(', ')}.`;
  return new FailureError('HostFailed', message);
};

const startThread = ({ server, calls, log }: SessionListenerOptions, tokens: Tokens, onEnd: () => void): Thread => {
  const listening = Promise.withResolvers<string>();
  const closed = Promise.withResolvers<void>();
  const ending = new AbortController();
  const underWay = new Set<Promise<void>>();
  let isExpectedToEnd = false;

  const worker = new Worker(new URL('./thread.ts', import.meta.url), {
    name: 'scribe sessions',
    workerData: server,
    resourceLimits,
    // It is handed descriptors that it did not open.
    trackUnmanagedFds: false,
  });
  worker.unref();
  const say = (message: ToThread): void => worker.postMessage(message);
  const clients = createRemoteClients(say);

  /** Resolves with the exit status of a command; 0 of what has none. */
  const perform = async (session: number, subject: SessionSubject): Promise<number> => {
    const { request } = subject;
    switch (request.kind) {
      case 'Exec': {
        const { stdin, stdout, stderr } = request;
        return (await calls.exec(request, clients.processClient(session, { stdin, stdout, stderr }))).exitCode;
      }
      case 'Attach': {
        const { stdin, stdout, stderr } = request;
        await calls.attach(request, clients.processClient(session, { stdin, stdout, stderr }));
        return 0;
      }
      case 'PortForward':
        await calls.portForward(request, subject.port, clients.portClient(session));
        return 0;
      default:
        return request satisfies never;
    }
  };

  const begin = async (session: number, subject: SessionSubject): Promise<void> => {
    const performed = perform(session, subject);
    try {
      say({ kind: 'over', session, exitCode: await unlessAborted(performed, ending.signal) });
    } catch (error) {
      say({ kind: 'failed', session, error: carried(error) });
    }
    // The client is told first; for whoever still performs it has gone then.
    clients.take({ kind: 'gone', session });
    await performed.catch(() => undefined);
    clients.forget(session);
  };

  const track = async (session: number, subject: SessionSubject): Promise<void> => {
    const under = begin(session, subject);
    underWay.add(under);
    await under;
    underWay.delete(under);
  };

  const take = (message: FromThread): void => {
    switch (message.kind) {
      case 'listening':
        return listening.resolve(message.baseUrl);
      case 'notListening':
        isExpectedToEnd = true;
        onEnd();
        return listening.reject(cannotListen(server, message.message));
      case 'redeem':
        return say({ kind: 'redeemed', number: message.number, request: tokens.redeem(message.named) });
      case 'begun':
        return void track(message.session, message.subject);
      case 'warned':
        return log.warn(message.message);
      case 'closed':
        return closed.resolve();
      default:
        return clients.take(message);
    }
  };

  listening.promise.catch(() => undefined);
  worker.on('message', take);
  worker.on('error', (error) => log.error(`The thread of the streaming server broke down: ${messageOf(error)}`));
  worker.on('exit', (code) => {
    const error = new FailureError('HostFailed', `The thread of the streaming server has ended with code ${code}.`);
    if (!isExpectedToEnd) log.error(error.message);
    listening.reject(error);
    closed.resolve();
    clients.fail(error);
    onEnd();
  });

  return {
    baseUrl: listening.promise,
    close: async () => {
      isExpectedToEnd = true;
      worker.ref();
      ending.abort(new FailureError('NotServing', 'The daemon is ending; begin anew in a moment.'));
      say({ kind: 'close' });
      await closed.promise;
      // So that they are written down.
      await orAfter(Promise.all(underWay), ENDS_MS, undefined);
      // What commands still write is read until the daemon ends.
      worker.unref();
    },
  };
};

export const createSessionListener = (options: SessionListenerOptions): SessionListener => {
  const tokens = createTokens(options.nowMs);
  let thread: Thread | null = null;

  const running = (): Thread => {
    if (thread !== null) return thread;
    const started = startThread(options, tokens, () => {
      if (thread === started) thread = null;
    });
    thread = started;
    return started;
  };

  return {
    start: async () => {
      await running().baseUrl;
    },
    urlFor: async (request) => {
      const baseUrl = await running().baseUrl;
      return urlOf(baseUrl, { kind: request.kind, token: tokens.issue(request) });
    },
    close: async () => {
      await thread?.close();
    },
  };
};
