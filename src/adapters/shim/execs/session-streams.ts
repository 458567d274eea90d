/**
 * Moves bytes between FIFOs and the streams of a session, each direction as fast as the slower side, and counts them.
 * What goes through is kept nowhere. A client that has gone stalls nobody: output is then read and dropped.
 */
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { messageOf } from '../../../domain/errors.ts';
import type { SessionStreams, TerminalSize } from '../../streaming/types.ts';
import type { ShimContext } from '../context.ts';
import type { ExecOutput } from './exec-process.ts';
import type { TaskClient } from '../task-client.ts';

export interface OutputPump extends ExecOutput {
  readonly sizeBytes: () => number;
  readonly close: () => void;
}

/** From a FIFO to the client; null drops it. */
export const pumpOutput = (fifo: Socket, client: Writable | null): OutputPump => {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let taker = client;
  let held = false;
  let lastMs = 0;
  let sizeBytes = 0;

  const goOn = (): void => {
    held = false;
    fifo.resume();
  };
  const drop = (): void => {
    taker = null;
    goOn();
  };
  client?.on('drain', goOn);
  client?.on('error', drop);
  client?.on('close', drop);
  fifo.on('data', (chunk: Buffer) => {
    lastMs = performance.now();
    if (taker === null || taker.destroyed) return;
    sizeBytes += chunk.length;
    if (taker.write(chunk)) return;
    held = true;
    fifo.pause();
  });
  fifo.on('error', () => resolve());
  fifo.on('close', () => resolve());

  return {
    ended,
    lastMs: () => lastMs,
    isHeld: () => held,
    sizeBytes: () => sizeBytes,
    close: () => {
      client?.off('drain', goOn);
      fifo.destroy();
    },
  };
};

export interface InputPump {
  /** Resolves when the client has sent all, and it has been taken, or when either side has gone. */
  readonly ended: Promise<void>;
  readonly sizeBytes: () => number;
  readonly close: () => void;
}

/** From the client to a FIFO, which is closed at the end. */
export const pumpInput = (client: Readable, fifo: Socket): InputPump => {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let sizeBytes = 0;

  const leave = (): void => {
    fifo.destroy();
  };
  fifo.on('error', leave);
  fifo.on('close', () => {
    // What the client sends from here on has nobody to go to.
    client.resume();
    resolve();
  });
  fifo.on('drain', () => client.resume());
  client.on('data', (chunk: Buffer) => {
    if (fifo.destroyed || fifo.writableEnded) return;
    sizeBytes += chunk.length;
    if (!fifo.write(chunk)) client.pause();
  });
  client.on('end', () => {
    if (!fifo.destroyed) fifo.end(leave);
  });
  client.on('error', leave);
  client.on('close', () => {
    if (!client.readableEnded) leave();
  });

  return { ended, sizeBytes: () => sizeBytes, close: leave };
};

/** Passes the sizes of the client's terminal on, the newest first, from when the process is `started`. */
export const followSize = (
  { timings, log }: ShimContext,
  client: TaskClient,
  call: { readonly id: string; readonly execId: string },
  { onResize }: SessionStreams,
  started: Promise<void>,
): void => {
  let wanted: TerminalSize | null = null;
  let sending = false;

  const send = async (): Promise<void> => {
    if (sending) return;
    sending = true;
    try {
      await started;
      while (wanted !== null) {
        const { width, height } = wanted;
        wanted = null;
        await client.resizePty({ ...call, width, height }, timings.callMs);
      }
    } catch (error) {
      log.debug({ ...call, error: messageOf(error) }, 'a terminal could not be resized');
    } finally {
      sending = false;
    }
  };
  onResize((size) => {
    wanted = size;
    void send();
  });
};
