/**
 * Captures what an exec writes to one of its FIFOs: up to a bound, and reading on beyond it, so that nothing that
 * writes ever stalls. Says when the stream has ended and when it last moved.
 */
import type { Socket } from 'node:net';
import { monotonicMs } from '../../linux/monotonic.ts';
import type { ExecOutput } from './exec-process.ts';

export interface Capture extends ExecOutput {
  /** What was captured so far. Output that comes later is dropped. */
  readonly take: () => Buffer;
  readonly close: () => void;
}

export const capture = (socket: Socket, bytesMax: number): Capture => {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  let pieces: Buffer[] = [];
  let bytes = 0;
  let lastMs = 0;
  let taken = false;

  socket.on('data', (chunk: Buffer) => {
    lastMs = monotonicMs();
    const room = bytesMax - bytes;
    if (taken || room <= 0) return;
    const piece = chunk.length <= room ? chunk : chunk.subarray(0, room);
    pieces.push(piece);
    bytes += piece.length;
  });
  socket.on('error', () => {
    resolve();
  });
  socket.on('close', () => {
    resolve();
  });

  return {
    ended,
    lastMs: () => lastMs,
    isHeld: () => false,
    take: () => {
      taken = true;
      const output = Buffer.concat(pieces, bytes);
      pieces = [];
      return output;
    },
    close: () => {
      socket.destroy();
    },
  };
};
