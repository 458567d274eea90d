/**
 * The thread of the streaming server: clients' connections and the bytes of their sessions are here, so that however much
 * they move, the daemon answers other calls. Asks the daemon what a token stands for and what becomes of a session, and
 * does as it is told. Started by listener.ts.
 */
import { close } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { hearContainer } from '../../adapters/log-keeper/attach.ts';
import { forward } from '../../adapters/port-forward/forward.ts';
import { pumpInput, pumpOutput, type RunningPump } from '../../adapters/streaming/pumps.ts';
import { createStreamingServer, type StreamingServerOptions } from '../../adapters/streaming/server.ts';
import type {
  AttachmentEnd,
  ForwardedBytes,
  PortStreams,
  SessionStreams,
  StreamingBackend,
  StreamingRequest,
} from '../../adapters/streaming/types.ts';
import { messageOf } from '../../domain/model/errors.ts';
import { goBehind } from '../../platform/linux/own-process.ts';
import { type ThreadIsUp, tellUp } from '../../platform/native-thread.ts';
import { createPendingReplies } from '../../platform/rpc/pending.ts';
import { unlessAborted } from '../../platform/rpc/timeout.ts';
import { carried, type FromThread, revived, type SessionSubject, type ToThread } from './messages.ts';

export type ThreadOptions = Omit<StreamingServerOptions, 'backend' | 'redeem' | 'log' | 'onVacant'>;

interface Held {
  /** null: a forwarded connection. */
  readonly streams: SessionStreams | null;
  /** Of a forwarded connection, perhaps before the client has opened all of it. */
  readonly connection: Promise<PortStreams> | null;
}

type Say = (message: FromThread) => void;

/** Sessions that clients have begun, each performed by the daemon. */
const createSessions = (say: Say, nextNumber: () => number) => {
  const sessions = createPendingReplies<number, Held>();

  /** Has the daemon perform a session, and resolves as it says. */
  const perform = async (subject: SessionSubject, client: Held, signal: AbortSignal): Promise<number> => {
    const session = nextNumber();
    const leave = (): void => say({ kind: 'gone', session });
    const over = sessions.wait(session, { note: client });
    say({ kind: 'begun', session, subject });
    client.streams?.onResize((size) => say({ kind: 'resized', session, size }));
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
    try {
      return await over;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  };

  const backend: StreamingBackend = {
    exec: async (request, streams) => ({
      exitCode: await perform({ request, port: 0 }, { streams, connection: null }, streams.signal),
    }),
    attach: async (request, streams) => {
      await perform({ request, port: 0 }, { streams, connection: null }, streams.signal);
    },
    portForward: async (request, forwardedPort, connection, signal) => {
      await perform({ request, port: forwardedPort }, { streams: null, connection }, signal);
    },
  };

  return { sessions, backend };
};

const createPumps = (say: Say) => {
  const pumps = new Map<number, RunningPump>();

  const addPump = (number: number, pump: RunningPump): void => {
    pumps.set(number, pump);
    void pump.ended.then(() => {
      pumps.delete(number);
      say({ kind: 'pumpEnded', pump: number });
    });
  };

  /** A descriptor whose client is gone, or can't be read, ends at once. */
  const refusePump = (number: number, fd: number): void => {
    close(fd, () => undefined);
    say({ kind: 'pumpEnded', pump: number });
  };

  return { pumps, addPump, refusePump };
};

/** What the daemon has asked for and waits for. */
const createWorks = (say: Say) => {
  const works = new Map<number, AbortController>();

  const work = async (
    number: number,
    start: (signal: AbortSignal) => Promise<AttachmentEnd | ForwardedBytes>,
  ): Promise<void> => {
    const controller = new AbortController();
    works.set(number, controller);
    try {
      say({ kind: 'done', work: number, result: await start(controller.signal) });
    } catch (error) {
      say({ kind: 'notDone', work: number, error: carried(error) });
    } finally {
      works.delete(number);
    }
  };

  return { works, work };
};

const serve = async (port: NonNullable<typeof parentPort>, options: ThreadOptions): Promise<void> => {
  const say = (message: FromThread): void => port.postMessage(message);
  let lastNumber = 0;
  const nextNumber = (): number => {
    lastNumber += 1;
    return lastNumber;
  };
  const { sessions, backend } = createSessions(say, nextNumber);
  const { pumps, addPump, refusePump } = createPumps(say);
  const { works, work } = createWorks(say);
  const redeeming = createPendingReplies<StreamingRequest | null>();

  const server = await createStreamingServer({
    ...options,
    backend,
    redeem: (named) => {
      const number = nextNumber();
      say({ kind: 'redeem', number, named });
      return redeeming.wait(number);
    },
    log: { warn: (message) => say({ kind: 'warned', message }) },
    onVacant: () => say({ kind: 'vacant' }),
  });

  const take = (message: ToThread): void => {
    switch (message.kind) {
      case 'redeemed':
        return redeeming.resolve(message.number, message.request);
      case 'pumpOutput': {
        const { pump, fd, stream, meter } = message;
        const client = sessions.noteOf(message.session)?.streams;
        // The shim waits for a reader, also when nobody hears it any more.
        return addPump(pump, pumpOutput(fd, client?.[stream] ?? null, meter));
      }
      case 'pumpInput': {
        const { pump, fd, meter } = message;
        const client = sessions.noteOf(message.session)?.streams?.stdin ?? null;
        return client === null ? refusePump(pump, fd) : addPump(pump, pumpInput(fd, client, meter));
      }
      case 'closePump':
        return pumps.get(message.pump)?.close();
      case 'dropInput':
        sessions
          .noteOf(message.session)
          ?.streams?.stdin?.on('error', () => undefined)
          .resume();
        return;
      case 'hear': {
        const { attachment, session, work: number } = message;
        const { stdout = null, stderr = null } = sessions.noteOf(session)?.streams ?? {};
        const onAttached = (): void => say({ kind: 'attached', work: number });
        return void work(number, (signal) => hearContainer({ ...attachment, stdout, stderr, signal, onAttached }));
      }
      case 'forward': {
        const connection = sessions.noteOf(message.session)?.connection;
        const { target } = message;
        return void work(message.work, async (signal) => {
          if (connection == null) throw new Error('the client has gone');
          return forward(await unlessAborted(connection, signal), target, signal);
        });
      }
      case 'cancel':
        return works.get(message.work)?.abort();
      case 'over':
        return sessions.resolve(message.session, message.exitCode);
      case 'failed':
        return sessions.reject(message.session, revived(message.error));
      case 'endIfIdle': {
        // Output that nobody hears any more is still read, so that whoever writes it goes on.
        const isIdle = !server.hasClients() && sessions.size() + pumps.size + works.size === 0;
        if (!isIdle) return say({ kind: 'isBusy' });
        say({ kind: 'isEnding' });
        return void server.close().then(() => port.close());
      }
      case 'close':
        return void server.close().then(() => say({ kind: 'closed' }));
      default:
        return message satisfies never;
    }
  };
  port.on('message', take);
  say({ kind: 'listening', baseUrl: server.baseUrl });
};

if (parentPort !== null) {
  const port = parentPort;
  const { isUp, ...options } = workerData as ThreadOptions & ThreadIsUp;
  tellUp({ isUp });
  goBehind();
  const say = (message: FromThread): void => port.postMessage(message);
  serve(port, options).catch((error: unknown) => {
    say({ kind: 'notListening', message: messageOf(error) });
    port.close();
  });
}
