/**
 * Moves bytes between FIFOs and the streams of a client, each direction as fast as the slower side. Keeps none of them.
 * A client that has gone stalls nobody: output is then read and dropped. The progress of a pump is in memory that other
 * threads read.
 */
import type { Readable, Writable } from 'node:stream';
import { fifoSocket } from '../../platform/linux/fifo-socket.ts';
import { monotonicMs } from '../../platform/linux/monotonic.ts';
import { readReusing } from '../../platform/linux/reused-buffers.ts';
import type { Pump } from './types.ts';

/** Figures of one pump, as Float64: how much has moved, when the last of it did, and whether the client holds it back. */
export type Meter = SharedArrayBuffer;

const Slot = { sizeBytes: 0, lastMs: 1, isHeld: 2 } as const;

export const createMeter = (): Meter => new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT * 3);

/** The figures that stand in a meter, for a pump in whichever thread. */
export const readMeter = (meter: Meter): Pick<Pump, 'sizeBytes' | 'lastMs' | 'isHeld'> => {
  const slots = new Float64Array(meter);
  return {
    sizeBytes: () => slots[Slot.sizeBytes] ?? 0,
    lastMs: () => slots[Slot.lastMs] ?? 0,
    isHeld: () => slots[Slot.isHeld] === 1,
  };
};

export type RunningPump = Pick<Pump, 'ended' | 'close'>;

/** From a FIFO to the client; null drops it. */
export const pumpOutput = (fd: number, client: Writable | null, meter: Meter): RunningPump => {
  const slots = new Float64Array(meter);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let sizeBytes = 0;
  let taker = client;

  const goOn = (): void => {
    slots[Slot.isHeld] = 0;
    fifo.resume();
  };
  const drop = (): void => {
    taker = null;
    goOn();
  };
  const pass = (chunk: Buffer, left: () => void): void => {
    slots[Slot.lastMs] = monotonicMs();
    if (taker === null || taker.destroyed) return left();
    sizeBytes += chunk.length;
    slots[Slot.sizeBytes] = sizeBytes;
    if (taker.write(chunk, left)) return;
    slots[Slot.isHeld] = 1;
    fifo.pause();
  };
  const fifo = fifoSocket(fd, 'reader', readReusing(pass));
  client?.on('drain', goOn);
  client?.on('error', drop);
  client?.on('close', drop);
  if (client?.destroyed === true) drop();
  // So that its end is told.
  fifo.resume();
  fifo.on('error', () => resolve());
  fifo.on('close', () => resolve());

  return {
    ended,
    close: () => {
      client?.off('drain', goOn);
      fifo.destroy();
    },
  };
};

/** From the client to a FIFO, which is closed at the end. */
export const pumpInput = (fd: number, client: Readable, meter: Meter): RunningPump => {
  const fifo = fifoSocket(fd, 'writer');
  const slots = new Float64Array(meter);
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
    slots[Slot.sizeBytes] = sizeBytes;
    slots[Slot.lastMs] = monotonicMs();
    if (!fifo.write(chunk)) client.pause();
  });
  client.on('end', () => {
    if (!fifo.destroyed) fifo.end(leave);
  });
  client.on('error', leave);
  client.on('close', () => {
    if (!client.readableEnded) leave();
  });
  // It went before it had a pump.
  if (client.destroyed && !client.readableEnded) leave();

  return { ended, close: leave };
};
