/**
 * Captures what an exec writes to one of its FIFOs: up to a bound, and reading on beyond it, so that nothing that
 * writes ever stalls. Output that was cut says so at its end. Says when the stream has ended and when it last moved.
 */
import type { Socket } from 'node:net';
import { monotonicMs } from '../../../platform/linux/monotonic.ts';

/** What is read of a command: how far it is decides how long the rest of it is waited for. */
export interface ExecOutput {
  /** Resolves when the last writer has gone. */
  readonly ended: Promise<void>;
  /** When the last piece came, by `monotonicMs`. */
  readonly lastMs: () => number;
  /** Whoever takes it is slow, so that nothing can come at the moment. */
  readonly isHeld: () => boolean;
}

/** The memory that the output of all execs under way may take, together. */
export interface OutputMemory {
  /** Whether there is room for so much more in a stream that has this much; if so it is taken. */
  readonly take: (moreBytes: number, hasBytes: number) => boolean;
  readonly giveBack: (bytes: number) => void;
}

/** What a stream may have while others have taken most of the room: probes and the like go on beside a flood. */
const SMALL_BYTES = 64 * 1024;

export const createOutputMemory = (bytesMax: number): OutputMemory => {
  const keptForSmall = bytesMax / 4;
  let taken = 0;
  return {
    take: (moreBytes, hasBytes) => {
      const isSmall = hasBytes + moreBytes <= SMALL_BYTES;
      if (taken + moreBytes > (isSmall ? bytesMax : bytesMax - keptForSmall)) return false;
      taken += moreBytes;
      return true;
    },
    giveBack: (bytes) => {
      taken -= bytes;
    },
  };
};

/** What the streams of one exec may be together: an answer holds no more. */
export interface OutputBound {
  readonly take: (wantedBytes: number, hasBytes: number) => number;
}

/** A flood of one stream leaves so much, or this share, for the other. */
const LEFT_FOR_OTHER_BYTES = 64 * 1024;
const LEFT_FOR_OTHER_SHARE = 8;

export const createOutputBound = (bytesMax: number): OutputBound => {
  const oneMax = bytesMax - Math.min(LEFT_FOR_OTHER_BYTES, Math.floor(bytesMax / LEFT_FOR_OTHER_SHARE));
  let taken = 0;
  return {
    take: (wantedBytes, hasBytes) => {
      const granted = Math.max(0, Math.min(wantedBytes, bytesMax - taken, oneMax - hasBytes));
      taken += granted;
      return granted;
    },
  };
};

export interface CaptureLimits {
  readonly memory: OutputMemory;
  readonly bound: OutputBound;
}

export interface Capture extends ExecOutput {
  /** What was captured so far, with a mark at its end when that is not all. Output that comes later is dropped. */
  readonly take: () => Buffer;
  readonly close: () => void;
}

const FIRST_BYTES = 1024;

const markOf = (bytes: number, dropped: number, why: string): Buffer =>
  Buffer.from(`\nscribe: output is cut here, after ${bytes} bytes; ${dropped} bytes more were dropped: ${why}\n`);

const TOO_LONG = 'it is longer than limits.exec_output_max, or than one answer';
const NO_MEMORY = 'the output of all commands under way is longer than limits.exec_output_total';

export const capture = (socket: Socket, { memory, bound }: CaptureLimits): Capture => {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  // One area that grows, not the pieces as they come: a command may write byte by byte.
  let area = Buffer.alloc(0);
  let bytes = 0;
  let droppedBytes = 0;
  let cutWhy: string | null = null;
  let lastMs = 0;
  let taken = false;

  const makeRoom = (wantedBytes: number): boolean => {
    if (wantedBytes <= area.length) return true;
    const size = Math.max(FIRST_BYTES, 2 ** Math.ceil(Math.log2(wantedBytes)));
    if (!memory.take(size - area.length, area.length)) return false;
    const larger = Buffer.allocUnsafeSlow(size);
    area.copy(larger, 0, 0, bytes);
    area = larger;
    return true;
  };

  const keep = (chunk: Buffer): void => {
    const granted = cutWhy === null ? bound.take(chunk.length, bytes) : 0;
    const isRoom = makeRoom(bytes + granted);
    if (isRoom) bytes += chunk.copy(area, bytes, 0, granted);
    if (isRoom && granted === chunk.length) return;
    cutWhy ??= isRoom ? TOO_LONG : NO_MEMORY;
    droppedBytes += isRoom ? chunk.length - granted : chunk.length;
  };

  socket.on('data', (chunk: Buffer) => {
    lastMs = monotonicMs();
    if (!taken) keep(chunk);
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
      const output = area.subarray(0, bytes);
      return cutWhy === null ? output : Buffer.concat([output, markOf(bytes, droppedBytes, cutWhy)]);
    },
    close: () => {
      taken = true;
      // Not before: what was taken is on its way to the caller until about now.
      memory.giveBack(area.length);
      area = Buffer.alloc(0);
      socket.destroy();
    },
  };
};
