/**
 * Streams over one WebSocket: each message begins with the number of its channel. Owns framing, backpressure in both
 * directions and half-closing; what the channels are for is the caller's business. Nothing a client sends is held
 * beyond a bound.
 */
import type { Readable, Writable } from 'node:stream';
import type { WebSocket } from 'ws';
import { createInbox, createOutlet, type Inbox } from './halves.ts';

export interface ChannelOptions {
  /** Numbers of the channels that the client writes to; what it sends on others is dropped. */
  readonly inputs: readonly number[];
  readonly outputs: readonly number[];
  /** Messages are text: the number as a digit, then base64. */
  readonly isBase64: boolean;
  /** The client may end a channel with a message of its own. */
  readonly hasHalfClose: boolean;
  readonly onData: () => void;
}

export interface Channels {
  readonly input: (channel: number) => Readable | null;
  readonly output: (channel: number) => Writable | null;
  /** Says goodbye behind all that was sent, and closes the connection. */
  readonly close: () => void;
}

const closeSignal = 255;
const base64Zero = 48;
const holdBytesMax = 262_144;
/** While nothing is read, pings go unanswered; a pong that nobody asked for tells the client that all is well. */
const pongIntervalMs = 20_000;

const CloseCode = { normal: 1000, protocolError: 1002 } as const;

/** Clients take any other code for a failure. The client's own goodbye has to be read, whatever else it has sent. */
export const sayGoodbye = (socket: WebSocket): void => {
  socket.resume();
  socket.close(CloseCode.normal);
};

const encode = (channel: number, data: Buffer, isBase64: boolean): Buffer | string => {
  if (isBase64) return String.fromCharCode(base64Zero + channel) + data.toString('base64');
  const message = Buffer.allocUnsafe(1 + data.length);
  message[0] = channel;
  data.copy(message, 1);
  return message;
};

const decode = (message: Buffer, isBase64: boolean): { readonly channel: number; readonly data: Buffer } => {
  const channel = message[0] ?? closeSignal;
  const data = message.subarray(1);
  return isBase64
    ? { channel: channel - base64Zero, data: Buffer.from(data.toString('latin1'), 'base64') }
    : { channel, data };
};

/** Divides `socket` into channels, which close with it. */
export const divide = (socket: WebSocket, options: ChannelOptions): Channels => {
  const { isBase64, hasHalfClose, onData } = options;
  const inboxes = new Map<number, Inbox>(options.inputs.map((channel) => [channel, createInbox(holdBytesMax)]));
  let waiting = 0;

  const hold = async (room: Promise<void>): Promise<void> => {
    waiting += 1;
    socket.pause();
    const timer = setInterval(() => {
      socket.pong();
    }, pongIntervalMs);
    await room;
    clearInterval(timer);
    waiting -= 1;
    if (waiting === 0) socket.resume();
  };

  const onMessage = (message: Buffer): void => {
    if (message.length === 0) return;
    onData();
    if (hasHalfClose && message[0] === closeSignal) {
      const inbox = message.length === 2 ? inboxes.get(message[1] ?? closeSignal) : undefined;
      if (inbox === undefined) socket.close(CloseCode.protocolError);
      else inbox.end();
      return;
    }
    const { channel, data } = decode(message, isBase64);
    const room = inboxes.get(channel)?.put(data) ?? null;
    if (room !== null) void hold(room);
  };

  const outletOf = (channel: number): Writable =>
    createOutlet({
      send: (chunk, sent) => {
        onData();
        socket.send(encode(channel, chunk, isBase64), sent);
      },
      // There is no message for the end of a channel in this direction: the connection ends when all have ended.
      end: (sent) => {
        sent();
      },
    });
  const outlets = new Map(options.outputs.map((channel) => [channel, outletOf(channel)]));

  const closeAll = (): void => {
    for (const { readable } of inboxes.values()) readable.destroy();
    for (const outlet of outlets.values()) outlet.destroy();
  };

  socket.on('message', onMessage);
  socket.on('close', closeAll);
  return {
    input: (channel) => inboxes.get(channel)?.readable ?? null,
    output: (channel) => outlets.get(channel) ?? null,
    close: () => {
      closeAll();
      sayGoodbye(socket);
    },
  };
};
