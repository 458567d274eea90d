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
import { createPendingReplies } from '../../platform/rpc/pending.ts';
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
}

const closeFile = (fd: number): Promise<void> => new Promise((resolve) => close(fd, () => resolve()));

export const createRemoteClients = (say: (message: ToThread) => void): RemoteClients => {
  const clients = new Map<number, Client>();
  const pumps = createPendingReplies<void>();
  const works = createPendingReplies<AttachmentEnd | ForwardedBytes, Work>();
  let lastNumber = 0;
  /** Nothing can be asked of the thread any more. */
  let hasEnded = false;

  const nextNumber = (): number => {
    lastNumber += 1;
    return lastNumber;
  };

  const addClient = (session: number): Client => {
    const client: Client = { gone: new AbortController(), size: null, hear: null };
    clients.set(session, client);
    if (hasEnded) client.gone.abort();
    return client;
  };

  const startPump = (fd: number, start: (pump: number, meter: Meter) => void): Pump => {
    const pump = nextNumber();
    const meter = createMeter();
    // A pump ends with its thread, too.
    const ended = hasEnded ? closeFile(fd) : pumps.wait(pump).catch(() => undefined);
    if (!hasEnded) start(pump, meter);
    return { ended, ...readMeter(meter), close: () => say({ kind: 'closePump', pump }) };
  };

  const startWork = async <R extends AttachmentEnd | ForwardedBytes>(
    start: (work: number) => void,
    signal: AbortSignal,
    onAttached: () => void = () => undefined,
  ): Promise<R> => {
    const work = nextNumber();
    const result = works.wait(work, { note: { onAttached } });
    if (hasEnded) return (await result) as R;
    const cancel = (): void => say({ kind: 'cancel', work });
    start(work);
    signal.addEventListener('abort', cancel);
    if (signal.aborted) cancel();
    try {
      // The thread answers a piece of work with what that work gives.
      return (await result) as R;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };

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
          return pumps.resolve(message.pump, undefined);
        case 'attached':
          return works.noteOf(message.work)?.onAttached();
        case 'done':
          return works.resolve(message.work, message.result);
        case 'notDone':
          return works.reject(message.work, revived(message.error));
        default:
          message satisfies never;
      }
    },
    fail: (error) => {
      hasEnded = true;
      for (const { gone } of clients.values()) gone.abort();
      pumps.close(error);
      works.close(error);
    },
  };
};
