/**
 * Captures what an exec writes to one of its FIFOs: up to a bound, and reading on beyond it, so that nothing that
 * writes ever stalls. Says when the stream has ended and when it last moved.
 */
import type { Socket } from 'node:net';

export interface Capture {
  /** Resolves when the last writer has gone. */
  readonly ended: Promise<void>;
  /** performance.now() of the last piece that came. */
  readonly lastMs: () => number;
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
    lastMs = performance.now();
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
