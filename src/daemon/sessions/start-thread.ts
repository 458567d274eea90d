/**
 * The daemon's side of one thread of sessions: starts it, makes the call of each session that a client begins there, and tells the
 * thread what became of it. When it is started and ended is listener.ts's business.
 */
import type { Tokens } from '../../adapters/streaming/tokens.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { whyBroke } from '../../platform/broken-thread.ts';
import { startNativeThread } from '../../platform/native-thread.ts';
import { orAfter, unlessAborted } from '../../platform/rpc/timeout.ts';
import type { SessionCalls } from './calls.ts';
import { carried, type FromThread, type SessionSubject, type ToThread } from './messages.ts';
import { createRemoteClients, type RemoteClients } from './remote-clients.ts';
import type { ThreadOptions } from './thread.ts';

export interface ThreadSources {
  readonly server: ThreadOptions;
  readonly calls: SessionCalls;
  readonly log: { readonly warn: (message: string) => void; readonly error: (message: string) => void };
}

/** Bounds what a thread takes that is gone wrong: then it ends, and the daemon does not. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 16 };

/** What clients leave behind when they go has so long to be written down. */
const ENDS_MS = 1_000;

export interface Thread {
  readonly baseUrl: Promise<string>;
  /** Ends it if nobody has a session. Resolves when that is decided: `onEnd` has been called if it does. */
  readonly endIfIdle: () => Promise<void>;
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

interface Heard {
  /** A session is over, or the last client has gone: perhaps nobody needs it now. */
  readonly onUsed: () => void;
  /** No URL may lead to this thread any more. */
  readonly onEnd: () => void;
}

/** Makes the calls of the sessions that clients have begun, and tells the thread what became of each. */
const createPerforming = (
  calls: SessionCalls,
  clients: RemoteClients,
  say: (message: ToThread) => void,
  ending: AbortSignal,
  onOver: () => void,
) => {
  const underWay = new Set<Promise<void>>();

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
      say({ kind: 'over', session, exitCode: await unlessAborted(performed, ending) });
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
    onOver();
  };

  return { underWay, track };
};

export const startThread = (
  { server, calls, log }: ThreadSources,
  redeem: Tokens['redeem'],
  { onUsed, onEnd }: Heard,
): Thread => {
  const listening = Promise.withResolvers<string>();
  const closed = Promise.withResolvers<void>();
  const ending = new AbortController();
  let isExpectedToEnd = false;
  let asked: PromiseWithResolvers<void> | null = null;
  let refusal: FailureError | null = null;

  const { worker, end } = startNativeThread(new URL('./thread.ts', import.meta.url), server, {
    name: 'scribe sessions',
    resourceLimits,
    // It is handed descriptors that it did not open.
    trackUnmanagedFds: false,
  });
  worker.unref();
  const say = (message: ToThread): void => worker.postMessage(message);
  const clients = createRemoteClients(say);
  const { underWay, track } = createPerforming(calls, clients, say, ending.signal, onUsed);

  const take = (message: FromThread): void => {
    switch (message.kind) {
      case 'listening':
        return listening.resolve(message.baseUrl);
      case 'notListening':
        isExpectedToEnd = true;
        refusal = cannotListen(server, message.message);
        onEnd();
        // Whoever hears of it finds no thread any more.
        return void end();
      case 'redeem':
        return say({ kind: 'redeemed', number: message.number, request: redeem(message.named) });
      case 'begun':
        return void track(message.session, message.subject);
      case 'warned':
        return log.warn(message.message);
      case 'vacant':
        return onUsed();
      case 'isBusy':
        return asked?.resolve();
      case 'isEnding':
        isExpectedToEnd = true;
        onEnd();
        return asked?.resolve();
      case 'closed':
        return closed.resolve();
      default:
        return clients.take(message);
    }
  };

  listening.promise.catch(() => undefined);
  worker.on('message', take);
  let why: string | null = null;
  worker.on('error', (error) => {
    why = whyBroke(error);
  });
  worker.on('exit', (code) => {
    const how = why === null ? `has ended with code ${code}` : `broke down: ${why}`;
    const error = new FailureError('HostFailed', `The thread of the streaming server ${how}.`);
    if (!isExpectedToEnd) log.error(error.message);
    listening.reject(refusal ?? error);
    closed.resolve();
    asked?.resolve();
    clients.fail(error);
    onEnd();
  });

  return {
    baseUrl: listening.promise,
    endIfIdle: () => {
      if (underWay.size > 0) return Promise.resolve();
      asked = Promise.withResolvers();
      say({ kind: 'endIfIdle' });
      return asked.promise;
    },
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
