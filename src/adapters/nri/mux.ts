/**
 * NRI's multiplexing: several connections on one stream, each a stream of bytes of its own. A frame is a header of eight
 * bytes, big-endian (connection id, length), then the bytes. Nothing is opened or closed but the whole. Knows no plugins.
 *
 * What a Go plugin reads at once has to fit what it reads into: frames of ttrpc of up to 4 KiB go whole; of longer ones the
 * header goes alone, and then all the rest, however long. Small pieces instead would overflow its queue of 256 frames, so
 * short frames of ttrpc that wait together share one.
 */
import { Duplex } from 'node:stream';
import { createFrameReader, encodeFrame, type FrameForm } from '../../platform/rpc/framing.ts';
import { frameDataBytesMax, frameHeaderBytes } from '../../platform/ttrpc/frame.ts';

/** The runtime is the client of the service Plugin. */
export const PLUGIN_CONN = 1;
/** The plugin is the client of the service Runtime. */
export const RUNTIME_CONN = 2;

/** A Go plugin's buffer. */
const WHOLE_BYTES_MAX = 4096;

const form: FrameForm<number> = {
  headBytes: 8,
  bodyBytesMax: frameDataBytesMax + frameHeaderBytes,
  writeHead: (target, connId, bytes) => {
    target.writeUInt32BE(connId, 0);
    target.writeUInt32BE(bytes, 4);
  },
  headOf: (source, at) => source.readUInt32BE(at),
  bodyBytesOf: (source, at) => source.readUInt32BE(at + 4),
};

export interface Mux {
  /** Ends with the whole. What is written at once has to be one frame of ttrpc. */
  readonly connection: (connId: number) => Duplex;
  /** Settles, never rejects, when the whole has closed, with what closed it: undefined when the other side or `close` did. */
  readonly closed: Promise<Error | undefined>;
  readonly close: () => void;
}

/** Frames of ttrpc as the bodies of frames of ours. */
const bodiesOf = (frames: readonly Buffer[]): readonly Buffer[] => {
  const bodies: Buffer[][] = [];
  let room = 0;
  for (const frame of frames) {
    if (frame.length > WHOLE_BYTES_MAX) {
      bodies.push([frame.subarray(0, frameHeaderBytes)], [frame.subarray(frameHeaderBytes)]);
      room = 0;
    } else if (frame.length > room) {
      bodies.push([frame]);
      room = WHOLE_BYTES_MAX - frame.length;
    } else {
      bodies.at(-1)?.push(frame);
      room -= frame.length;
    }
  }
  return bodies.map((body) => Buffer.concat(body));
};

/** Owns `trunk` from now on. Frames for connections that nobody has asked for are dropped. */
export function createMux(trunk: Duplex): Mux {
  const connections = new Map<number, Duplex>();
  const { promise: closed, resolve: settleClosed } = Promise.withResolvers<Error | undefined>();

  const shut = (cause?: Error): void => {
    settleClosed(cause);
    trunk.destroy();
    for (const connection of connections.values()) connection.destroy();
  };

  const send = (connId: number, frames: readonly Buffer[], done: (error?: Error | null) => void): void => {
    const bodies = bodiesOf(frames);
    // All of them go by one system call.
    trunk.cork();
    for (const [at, body] of bodies.entries())
      trunk.write(encodeFrame(form, connId, body), at === bodies.length - 1 ? done : undefined);
    trunk.uncork();
  };

  const read = createFrameReader(form, {
    // What is read belongs to the trunk's buffer, and whoever reads the connection may keep it.
    frame: (connId, body) => {
      // Whoever does not read one connection gets nothing on the others either: what is held stays bounded.
      if (connections.get(connId)?.push(Buffer.from(body)) === false) trunk.pause();
    },
    misfit: (_connId, bytes) => {
      throw new Error(`a frame of ${bytes} bytes is above the limit of ${form.bodyBytesMax}`);
    },
  });

  trunk.on('data', (chunk: Buffer) => {
    try {
      read(chunk);
    } catch (error) {
      shut(error instanceof Error ? error : new Error(String(error)));
    }
  });
  trunk.on('error', shut);
  trunk.on('end', () => shut());
  trunk.on('close', () => shut());

  return {
    connection(connId) {
      const known = connections.get(connId);
      if (known !== undefined) return known;
      const connection = new Duplex({
        read: () => void trunk.resume(),
        write: (chunk: Buffer, _encoding, done) => send(connId, [chunk], done),
        writev: (entries, done) =>
          send(
            connId,
            entries.map(({ chunk }) => chunk as Buffer),
            done,
          ),
      });
      connections.set(connId, connection);
      if (trunk.destroyed) connection.destroy();
      return connection;
    },
    closed,
    close: () => shut(),
  };
}
