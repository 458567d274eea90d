/**
 * The server's end of one SPDY/3.1 connection, over any byte stream: streams that a client opens, each with two halves.
 * There are no windows, since the clients never open one: what a stream's reader does not take stops the whole
 * connection from being read. A breach of the protocol ends this connection and nothing else. Knows nothing of
 * sessions.
 */
import type { Duplex, Readable, Writable } from 'node:stream';
import { createInbox, createOutlet, type Inbox } from '../halves.ts';
import {
  createFrameDecoder,
  encodeDataHeader,
  encodeGoAway,
  encodePing,
  encodeRstStream,
  encodeSynReply,
  flagFin,
  flagUnidirectional,
  RstStatus,
  type SpdyFrame,
  SpdyProtocolError,
} from './frames.ts';
import { createEmptyBlocks, createHeaderInflater, parseHeaders, type SpdyHeaders } from './headers.ts';

export interface SpdyStream {
  readonly id: number;
  readonly headers: SpdyHeaders;
  /** Closes without an end when the client resets the stream or goes. */
  readonly input: Readable;
  readonly output: Writable;
  /** Ends both halves at once, whatever they still hold. */
  readonly reset: () => void;
}

export interface SpdyOptions {
  /** More streams than this at a time are refused. */
  readonly streamsMax: number;
  /** What one stream holds that nobody has read, before the connection is not read any more. */
  readonly holdBytesMax: number;
  /** Whether a stream is welcome; one that is not is reset. */
  readonly accepts: (headers: SpdyHeaders) => boolean;
  readonly onStream: (stream: SpdyStream) => void;
  /** Called for every piece of data, in either direction. */
  readonly onData: () => void;
  /** The client broke the protocol: the connection is over. */
  readonly onProtocolError: (error: SpdyProtocolError) => void;
  /** Ends the byte stream, once what was written has left. */
  readonly end: () => void;
}

export interface SpdyConnection {
  /** Says goodbye behind all that was written, and ends the connection. */
  readonly close: () => void;
  /** Settles, never rejects, when the byte stream has closed. */
  readonly closed: Promise<void>;
}

interface StreamEntry {
  readonly inbox: Inbox;
  readonly output: Writable;
  isInputOver: boolean;
  isOutputOver: boolean;
}

/** Frames are this long at most, so that streams take turns. */
const dataBytesMax = 65_536;
/** Answers (replies, pings) that a client has not read, before it is not listened to any more. */
const answerBytesMax = 65_536;
/** A client that does not close its end after goodbye is cut off. */
const lingerMs = 10_000;
/** While nothing is read, only writing tells whether the client is still there. */
const probeIntervalMs = 20_000;

/** In frames that let other streams take turns. */
const sendData = (transport: Duplex, id: number, chunk: Buffer, sent: (error?: Error | null) => void): void => {
  transport.cork();
  for (let from = 0; from < chunk.length; from += dataBytesMax) {
    const data = chunk.subarray(from, from + dataBytesMax);
    transport.write(encodeDataHeader(id, false, data.length));
    if (from + dataBytesMax < chunk.length) transport.write(data);
    else transport.write(data, sent);
  }
  transport.uncork();
};

interface Answers {
  readonly answer: (frame: Buffer) => void;
  /** The client has more of them to read than it may. */
  readonly areUnread: () => boolean;
  readonly untilRead: () => Promise<void>;
  /** Waits, and keeps asking the client for a sign of life meanwhile. */
  readonly waitProbing: (room: Promise<void>) => Promise<void>;
  /** Nobody waits any more. */
  readonly close: () => void;
}

/** What the server says for itself: bounded by what the client reads. */
const createAnswers = (transport: Duplex): Answers => {
  let lastPingId = 0;
  let unreadAnswerBytes = 0;
  let answersRead: (() => void) | null = null;

  const answer = (frame: Buffer): void => {
    if (transport.destroyed || transport.writableEnded) return;
    unreadAnswerBytes += frame.length;
    transport.write(frame, () => {
      unreadAnswerBytes -= frame.length;
      if (unreadAnswerBytes <= answerBytesMax) answersRead?.();
    });
  };

  const untilRead = async (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    answersRead = resolve;
    if (transport.destroyed) resolve();
    await promise;
    answersRead = null;
  };

  const waitProbing = async (room: Promise<void>): Promise<void> => {
    const timer = setInterval(() => {
      lastPingId += 2;
      answer(encodePing(lastPingId));
    }, probeIntervalMs);
    await room.finally(() => {
      clearInterval(timer);
    });
  };

  return {
    answer,
    areUnread: () => unreadAnswerBytes > answerBytesMax,
    untilRead,
    waitProbing,
    close: () => answersRead?.(),
  };
};

/** The streams that are open. */
const createStreams = (transport: Duplex, options: SpdyOptions, answer: (frame: Buffer) => void) => {
  const emptyBlock = createEmptyBlocks();
  const streams = new Map<number, StreamEntry>();

  const forgetWhenOver = (id: number, entry: StreamEntry): void => {
    if (entry.isInputOver && entry.isOutputOver && streams.get(id) === entry) streams.delete(id);
  };

  /** Both halves close; nothing is said to the client. */
  const drop = (id: number, entry: StreamEntry): void => {
    streams.delete(id);
    entry.inbox.readable.destroy();
    entry.output.destroy();
  };

  const dropAll = (): void => {
    for (const [id, entry] of [...streams]) drop(id, entry);
  };

  const open = (id: number, headers: SpdyHeaders, fin: boolean): void => {
    const inbox = createInbox(options.holdBytesMax);
    const output = createOutlet({
      send: (chunk, sent) => {
        options.onData();
        sendData(transport, id, chunk, sent);
      },
      end: (sent) => {
        entry.isOutputOver = true;
        forgetWhenOver(id, entry);
        transport.write(encodeDataHeader(id, true, 0), sent);
      },
    });
    const entry: StreamEntry = { inbox, output, isInputOver: fin, isOutputOver: false };
    streams.set(id, entry);
    if (fin) inbox.end();
    answer(encodeSynReply(id, emptyBlock()));
    const reset = (): void => {
      if (streams.get(id) !== entry) return;
      drop(id, entry);
      answer(encodeRstStream(id, RstStatus.Cancel));
    };
    options.onStream({ id, headers, input: inbox.readable, output, reset });
  };

  const endInput = (id: number): void => {
    const entry = streams.get(id);
    if (entry === undefined) return;
    entry.isInputOver = true;
    entry.inbox.end();
    forgetWhenOver(id, entry);
  };

  return { streams, open, endInput, drop, dropAll };
};

export const serveSpdy = (transport: Duplex, options: SpdyOptions): SpdyConnection => {
  const decoder = createFrameDecoder();
  const inflater = createHeaderInflater();
  const { promise: closed, resolve: settleClosed } = Promise.withResolvers<void>();
  let lastStreamId = 0;
  let isOver = false;
  const { answer, areUnread, untilRead, waitProbing, close: closeAnswers } = createAnswers(transport);
  const { streams, open, endInput, drop, dropAll } = createStreams(transport, options, answer);

  const close = (): void => {
    if (isOver) return;
    isOver = true;
    answer(encodeGoAway(lastStreamId));
    dropAll();
    options.end();
    const timer = setTimeout(() => transport.destroy(), lingerMs);
    void closed.then(() => {
      clearTimeout(timer);
    });
  };

  const onTransportClosed = (): void => {
    isOver = true;
    dropAll();
    inflater.close();
    closeAnswers();
    settleClosed();
  };

  const onSynStream = async (id: number, flags: number, block: Buffer): Promise<void> => {
    const headers = parseHeaders(await inflater.inflate(block));
    if (isOver) return;
    const isNext = id % 2 === 1 && id > lastStreamId;
    if (!isNext || (flags & flagUnidirectional) !== 0) {
      answer(encodeRstStream(id, RstStatus.ProtocolError));
      return;
    }
    lastStreamId = id;
    if (streams.size >= options.streamsMax || !options.accepts(headers)) {
      answer(encodeRstStream(id, RstStatus.RefusedStream));
      return;
    }
    open(id, headers, (flags & flagFin) !== 0);
  };

  const onData = (id: number, data: Buffer, fin: boolean): Promise<void> | null => {
    options.onData();
    const room = streams.get(id)?.inbox.put(data) ?? null;
    if (fin) endInput(id);
    return room;
  };

  /** Returns what has to be waited for before the next frame. */
  const onFrame = (frame: SpdyFrame): Promise<void> | null => {
    switch (frame.kind) {
      case 'data':
        return onData(frame.streamId, frame.data, frame.fin);
      case 'synStream':
        return onSynStream(frame.streamId, frame.flags, frame.block);
      case 'headers':
        // They mean nothing here, but those after them can't be read without them.
        return inflater.inflate(frame.block).then(() => {
          if ((frame.flags & flagFin) !== 0) endInput(frame.streamId);
        });
      case 'rstStream': {
        const entry = streams.get(frame.streamId);
        if (entry !== undefined) drop(frame.streamId, entry);
        return null;
      }
      case 'ping':
        if (frame.id % 2 === 1) answer(encodePing(frame.id));
        return null;
      // A client that says goodbye closes its end when it is done.
      case 'goAway':
      case 'ignored':
        return null;
    }
  };

  const read = async (): Promise<void> => {
    for await (const chunk of transport as AsyncIterable<Buffer>) {
      decoder.push(chunk);
      for (let frame = decoder.next(); frame !== null; frame = decoder.next()) {
        const room = onFrame(frame);
        if (room !== null) await waitProbing(room);
        if (areUnread()) await untilRead();
      }
    }
  };

  const run = async (): Promise<void> => {
    try {
      await read();
    } catch (error) {
      if (error instanceof SpdyProtocolError && !isOver) options.onProtocolError(error);
    } finally {
      transport.destroy();
    }
  };

  transport.on('error', () => undefined);
  transport.on('close', onTransportClosed);
  void run();
  return { close, closed };
};
