/**
 * The two halves of a stream that shares a connection with others: what arrives for it, and what leaves from it. What
 * arrives is held up to a bound that counts pieces, too, so that tiny pieces can't cost more than they weigh.
 */
import { Readable, Writable } from 'node:stream';

export interface Inbox {
  readonly readable: Readable;
  /** Takes what arrived. Returns null, or a promise that settles once there is room again: nothing should be put before. */
  readonly put: (piece: Buffer) => Promise<void> | null;
  /** What was put is read, then the end. */
  readonly end: () => void;
}

const pieceCostBytes = 256;

/** An inbox that asks its owner to wait while it holds more than `holdBytesMax`. */
export const createInbox = (holdBytesMax: number): Inbox => {
  let pieces: Buffer[] = [];
  let costBytes = 0;
  let isWanted = false;
  let isEnded = false;
  let room: { readonly promise: Promise<void>; readonly resolve: () => void } | null = null;

  const makeRoom = (): void => {
    pieces = [];
    costBytes = 0;
    room?.resolve();
    room = null;
  };
  const deliver = (): void => {
    if (!isWanted) return;
    const [first] = pieces;
    if (first !== undefined) {
      isWanted = false;
      const whole = pieces.length === 1 ? first : Buffer.concat(pieces);
      makeRoom();
      readable.push(whole);
    } else if (isEnded) {
      isWanted = false;
      readable.push(null);
    }
  };
  const readable = new Readable({
    read: () => {
      isWanted = true;
      deliver();
    },
    destroy: (error, callback) => {
      makeRoom();
      callback(error);
    },
  });
  readable.on('error', () => undefined);

  return {
    readable,
    put: (piece) => {
      if (piece.length === 0 || isEnded || readable.destroyed) return null;
      pieces.push(piece);
      costBytes += piece.length + pieceCostBytes;
      deliver();
      if (costBytes <= holdBytesMax) return null;
      room ??= Promise.withResolvers<void>();
      return room.promise;
    },
    end: () => {
      isEnded = true;
      deliver();
    },
  };
};

export interface Departure {
  /** Calls back once the connection has taken the chunk. */
  readonly send: (chunk: Buffer, sent: (error?: Error | null) => void) => void;
  readonly end: (sent: (error?: Error | null) => void) => void;
}

/** A stream whose chunks leave one at a time, as fast as the connection takes them. */
export const createOutlet = ({ send, end }: Departure): Writable => {
  const writable = new Writable({
    write: (chunk: Buffer, _encoding, sent) => {
      send(chunk, sent);
    },
    final: end,
  });
  // Whoever writes hears of it in the callback of the write.
  writable.on('error', () => undefined);
  return writable;
};

/** Ends a stream and settles, never rejects, when all has left or can't any more. */
export const finish = (stream: Writable | null, last?: string): Promise<void> =>
  new Promise((resolve) => {
    if (stream === null) {
      resolve();
      return;
    }
    if (last !== undefined) stream.write(last);
    stream.end(() => {
      resolve();
    });
  });
