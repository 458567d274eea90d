/**
 * The clients of sessions as the daemon has them, while their streams are in the thread: asks the thread to move bytes,
 * and hears from it how far that is. Knows nothing of calls, tokens or how the thread comes and goes.
 */
import { close } from 'node:fs';
import { createMeter, type Meter, readMeter } from '../../adapters/streaming/pumps.ts';
import type {
  AttachmentEnd,
  ForwardedBytes,
  PortClient,
  ProcessClient,
  Pump,
  TerminalSize,
} from '../../adapters/streaming/types.ts';
import { type FromThread, revived, type ToThread } from './messages.ts';

/** What the thread says of clients and of work that it was given. */
export type ClientMessage = Extract<
  FromThread,
  { readonly kind: 'resized' | 'gone' | 'pumpEnded' | 'attached' | 'done' | 'notDone' }
>;

export interface RemoteClients {
  readonly processClient: (session: number, has: ProcessClient['has']) => ProcessClient;
  readonly portClient: (session: number) => PortClient;
  /** The session is over. */
  readonly forget: (session: number) => void;
  readonly take: (message: ClientMessage) => void;
  /** The thread has ended: all clients have gone, and what was under way is not done. */
  readonly fail: (error: Error) => void;
}

interface Client {
  readonly gone: AbortController;
  size: TerminalSize | null;
  hear: ((size: TerminalSize) => void) | null;
}

interface Work {
  readonly onAttached: () => void;
  readonly resolve: (result: AttachmentEnd | ForwardedBytes) => void;
  readonly reject: (error: Error) => void;
}

export const createRemoteClients = (say: (message: ToThread) => void): RemoteClients => {
  const clients = new Map<number, Client>();
  const pumps = new Map<number, () => void>();
  const works = new Map<number, Work>();
  let lastNumber = 0;
  /** Why nothing can be asked of the thread any more. */
  let ended: Error | null = null;

  const nextNumber = (): number => {
    lastNumber += 1;
    return lastNumber;
  };

  const addClient = (session: number): Client => {
    const client: Client = { gone: new AbortController(), size: null, hear: null };
    clients.set(session, client);
    if (ended !== null) client.gone.abort();
    return client;
  };

  const startPump = (fd: number, start: (pump: number, meter: Meter) => void): Pump => {
    const pump = nextNumber();
    const meter = createMeter();
    const { promise, resolve } = Promise.withResolvers<void>();
    if (ended === null) {
      pumps.set(pump, resolve);
      start(pump, meter);
    } else close(fd, () => resolve());
    return { ended: promise, ...readMeter(meter), close: () => say({ kind: 'closePump', pump }) };
  };

  const startWork = <R extends AttachmentEnd | ForwardedBytes>(
    start: (work: number) => void,
    signal: AbortSignal,
    onAttached: () => void = () => undefined,
  ): Promise<R> =>
    new Promise<R>((resolve, reject) => {
      if (ended !== null) {
        reject(ended);
        return;
      }
      const work = nextNumber();
      const cancel = (): void => say({ kind: 'cancel', work });
      const settle = (): void => {
        works.delete(work);
        signal.removeEventListener('abort', cancel);
      };
      works.set(work, {
        onAttached,
        resolve: (result) => {
          settle();
          // The thread answers a piece of work with what that work gives.
          resolve(result as R);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      });
      start(work);
      signal.addEventListener('abort', cancel);
      if (signal.aborted) cancel();
    });

  return {
    processClient: (session, has) => {
      const client = addClient(session);
      return {
        has,
        pumpInput: (fd) => startPump(fd, (pump, meter) => say({ kind: 'pumpInput', session, pump, fd, meter })),
        pumpOutput: (stream, fd) =>
          startPump(fd, (pump, meter) => say({ kind: 'pumpOutput', session, pump, stream, fd, meter })),
        dropInput: () => say({ kind: 'dropInput', session }),
        hear: (attachment, signal, onAttached) =>
          startWork((work) => say({ kind: 'hear', session, work, attachment }), signal, onAttached),
        onResize: (hear) => {
          client.hear = hear;
          if (client.size !== null) hear(client.size);
        },
        signal: client.gone.signal,
      };
    },
    portClient: (session) => ({
      forward: (target, signal) => startWork((work) => say({ kind: 'forward', session, work, target }), signal),
      signal: addClient(session).gone.signal,
    }),
    forget: (session) => {
      clients.delete(session);
    },
    take: (message) => {
      switch (message.kind) {
        case 'resized': {
          const client = clients.get(message.session);
          if (client === undefined) return;
          client.size = message.size;
          client.hear?.(message.size);
          return;
        }
        case 'gone':
          clients.get(message.session)?.gone.abort();
          return;
        case 'pumpEnded':
          pumps.get(message.pump)?.();
          pumps.delete(message.pump);
          return;
        case 'attached':
          works.get(message.work)?.onAttached();
          return;
        case 'done':
          works.get(message.work)?.resolve(message.result);
          return;
        case 'notDone':
          works.get(message.work)?.reject(revived(message.error));
          return;
        default:
          message satisfies never;
      }
    },
    fail: (error) => {
      ended = error;
      for (const { gone } of clients.values()) gone.abort();
      for (const end of pumps.values()) end();
      for (const { reject } of [...works.values()]) reject(error);
      pumps.clear();
    },
  };
};
