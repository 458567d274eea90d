/** The client's end of SPDY/3.1, frame by frame, so that tests can say what no well-behaved client would. */
import { connect, type Socket } from 'node:net';
import { constants, createDeflate } from 'node:zlib';
import { headerDictionary } from '../../../src/adapters/streaming/spdy/dictionary.ts';
import { FrameType, frameHeaderBytes } from '../../../src/adapters/streaming/spdy/frames.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';

const words = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
};

/** Any control frame, of any version. */
export const control = (type: number, flags: number, payload: Buffer, version = 3): Buffer =>
  Buffer.concat([words((0x8000_0000 | (version << 16) | type) >>> 0, ((flags << 24) | payload.length) >>> 0), payload]);

export const data = (streamId: number, payload: Buffer | string, flags = 0): Buffer => {
  const bytes = Buffer.from(payload);
  return Buffer.concat([words(streamId, ((flags << 24) | bytes.length) >>> 0), bytes]);
};

export const synStream = (streamId: number, block: Buffer, flags = 0): Buffer =>
  control(FrameType.SynStream, flags, Buffer.concat([words(streamId, 0), Buffer.of(0, 0), block]));

export const rstStream = (streamId: number): Buffer => control(FrameType.RstStream, 0, words(streamId, 5));
export const ping = (id: number): Buffer => control(FrameType.Ping, 0, words(id));

export const plainBlock = (headers: Readonly<Record<string, string>>): Buffer => {
  const texts = Object.entries(headers).flat();
  const pieces = texts.flatMap((text) => [words(Buffer.byteLength(text)), Buffer.from(text)]);
  return Buffer.concat([words(texts.length / 2), ...pieces]);
};

/** Compresses blocks one after the other, as the one zlib stream that they are. */
export const createBlocks = (): ((block: Buffer) => Promise<Buffer>) => {
  const deflate = createDeflate({ dictionary: headerDictionary, flush: constants.Z_SYNC_FLUSH });
  let chunks: Buffer[] = [];
  deflate.on('data', (chunk: Buffer) => chunks.push(chunk));
  return (block) =>
    new Promise((resolve) => {
      chunks = [];
      deflate.write(block, () => {
        resolve(Buffer.concat(chunks));
      });
    });
};

export interface ReceivedFrame {
  /** null for data. */
  readonly type: number | null;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

export interface SpdyClient {
  readonly socket: Socket;
  /** The server's answer to the upgrade, up to the empty line. */
  readonly response: string;
  readonly open: (streamId: number, headers: Readonly<Record<string, string>>, flags?: number) => Promise<void>;
  /** The next frame; null when the server has closed the connection. */
  readonly next: () => Promise<ReceivedFrame | null>;
  /** Frames up to the first that answers; rejects when the connection closes before. */
  readonly until: (type: number, streamId: number) => Promise<ReceivedFrame>;
}

const frameAt = (bytes: Buffer): { readonly frame: ReceivedFrame; readonly sizeBytes: number } | null => {
  if (bytes.length < frameHeaderBytes) return null;
  const first = bytes.readUInt32BE(0);
  const second = bytes.readUInt32BE(4);
  const sizeBytes = frameHeaderBytes + (second & 0xff_ffff);
  if (bytes.length < sizeBytes) return null;
  const payload = bytes.subarray(frameHeaderBytes, sizeBytes);
  const isControl = first >= 0x8000_0000;
  const streamId = isControl ? payload.readUInt32BE(0) : first;
  return { frame: { type: isControl ? first & 0xffff : null, flags: second >>> 24, streamId, payload }, sizeBytes };
};

/** Connects and asks for SPDY; the frames begin when it resolves. */
export const connectSpdy = async (owner: Owner, url: string, protocol = 'v4.channel.k8s.io'): Promise<SpdyClient> => {
  const { hostname, port, pathname } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  onCleanup(owner, () => {
    socket.destroy();
  });
  socket.on('error', () => undefined);
  const upgrade = ['Connection: Upgrade', 'Upgrade: SPDY/3.1', `X-Stream-Protocol-Version: ${protocol}`];
  socket.write(`POST ${pathname} HTTP/1.1\r\nHost: test\r\n${upgrade.join('\r\n')}\r\n\r\n`);
  const chunks = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let pending = Buffer.alloc(0);
  const more = async (): Promise<boolean> => {
    const result: IteratorResult<Buffer, unknown> | null = await chunks.next().catch(() => null);
    if (result === null || result.done === true) return false;
    pending = Buffer.concat([pending, result.value]);
    return true;
  };
  while (!pending.includes('\r\n\r\n')) if (!(await more())) break;
  const headBytes = pending.indexOf('\r\n\r\n') + 4;
  const response = pending.toString('latin1', 0, headBytes);
  pending = pending.subarray(headBytes);
  const compress = createBlocks();
  const next = async (): Promise<ReceivedFrame | null> => {
    for (;;) {
      const found = frameAt(pending);
      if (found !== null) {
        pending = pending.subarray(found.sizeBytes);
        return found.frame;
      }
      if (!(await more())) return null;
    }
  };
  return {
    socket,
    response,
    open: async (streamId, headers, flags = 0) => {
      socket.write(synStream(streamId, await compress(plainBlock(headers)), flags));
    },
    next,
    until: async (type, streamId) => {
      for (;;) {
        const frame = await next();
        if (frame === null) throw new Error(`the connection closed before frame ${type} of stream ${streamId}`);
        if (frame.type === type && frame.streamId === streamId) return frame;
      }
    },
  };
};
