/**
 * Clients attached to one container's output, in the log keeper: each piece is copied once and written to all of them.
 * A client that is slower than the container holds nobody up: it is let go once too much waits for it. Also how the
 * pieces travel: frames on the connection that asked for them, after its reply.
 *
 *   1 byte   kind (OutputFrame)
 *   4 bytes  length of what follows, big-endian
 *   rest     what the container wrote
 */
import type { Socket } from 'node:net';
import { encodeFrame, type FrameForm } from '../../platform/rpc/framing.ts';
import type { StreamName } from './records.ts';

export const OutputFrame = {
  /** The container's output has ended; the last frame. */
  ended: 0,
  stdout: 1,
  stderr: 2,
  /** The client is too slow; the last frame. */
  tooSlow: 3,
} as const;

/** A keeper reads less at once. */
const PIECE_BYTES_MAX = 1024 * 1024;

/** The head is the kind. */
export const outputFrames: FrameForm<number> = {
  headBytes: 5,
  bodyBytesMax: PIECE_BYTES_MAX,
  writeHead: (target, kind, pieceBytes) => {
    target.writeUInt8(kind, 0);
    target.writeUInt32BE(pieceBytes, 1);
  },
  headOf: (source, at) => source.readUInt8(at),
  bodyBytesOf: (source, at) => source.readUInt32BE(at + 1),
};

/** What may wait for one client, beside what the kernel holds. */
const WAITING_BYTES_MAX = 4 * 1024 * 1024;

export interface AttachWish {
  readonly stdout: boolean;
  readonly stderr: boolean;
}

export interface Attached {
  readonly add: (socket: Socket, wish: AttachWish) => void;
  /** Must be given every piece, and keeps none. */
  readonly share: (stream: StreamName, piece: Uint8Array) => void;
  /** The output has ended: so do the clients' streams. */
  readonly end: () => void;
  /** Another keeper takes over: clients find it by themselves. */
  readonly drop: () => void;
}

const NOTHING = new Uint8Array();

export const createAttached = (): Attached => {
  const clients = new Map<Socket, AttachWish>();

  const finish = (socket: Socket, kind: number): void => {
    clients.delete(socket);
    socket.end(encodeFrame(outputFrames, kind, NOTHING));
  };

  return {
    add: (socket, wish) => {
      clients.set(socket, wish);
      socket.once('close', () => clients.delete(socket));
    },
    share: (stream, piece) => {
      if (clients.size === 0) return;
      const frame = encodeFrame(outputFrames, OutputFrame[stream], piece);
      for (const [socket, wish] of clients) {
        if (!wish[stream]) continue;
        if (socket.writableLength > WAITING_BYTES_MAX) finish(socket, OutputFrame.tooSlow);
        else socket.write(frame);
      }
    },
    end: () => {
      for (const socket of clients.keys()) finish(socket, OutputFrame.ended);
    },
    drop: () => {
      for (const socket of clients.keys()) socket.destroy();
      clients.clear();
    },
  };
};
