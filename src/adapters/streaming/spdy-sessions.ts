/**
 * Sessions whose streams a client opens one by one over SPDY: those of a process by their type, those of forwarded ports
 * in pairs. Owns waiting for them, for a bounded time; frames are the connection's business.
 */
import type { Duplex } from 'node:stream';
import { FailureError } from '../../domain/model/errors.ts';
import { type ProcessProtocol, portFromText } from './negotiate.ts';
import { type PortChannels, runPortForward, runProcessSession, type SessionContext } from './session.ts';
import { type SpdyConnection, type SpdyStream, serveSpdy } from './spdy/connection.ts';
import type { SpdyHeaders } from './spdy/headers.ts';
import type { AttachRequest, ExecRequest, PortForwardRequest, PortStreams } from './types.ts';

/** What a session over one connection is given beside its streams. */
export interface ConnectionContext extends SessionContext {
  readonly streamCreationTimeoutMs: number;
  /** Data moved. */
  readonly onData: () => void;
}

/** Ends the byte stream once what was written has left. */
type EndTransport = () => void;

const typeHeader = 'streamtype';
const portHeader = 'port';
const requestIdHeader = 'requestid';

const StreamType = {
  error: 'error',
  stdin: 'stdin',
  stdout: 'stdout',
  stderr: 'stderr',
  resize: 'resize',
  data: 'data',
} as const;

const processStreamsMax = 8;
const processHoldBytesMax = 262_144;
const portStreamsMax = 512;
const portHoldBytesMax = 65_536;

const complainTo =
  ({ log }: SessionContext) =>
  (error: Error): void => {
    log.warn(`a streaming client broke the protocol: ${error.message}`);
  };

const processTypes: ReadonlySet<string> = new Set([
  StreamType.error,
  StreamType.stdin,
  StreamType.stdout,
  StreamType.stderr,
  StreamType.resize,
]);

const wantedTypes = (request: ExecRequest | AttachRequest, protocol: ProcessProtocol): readonly string[] => [
  StreamType.error,
  ...(request.stdin ? [StreamType.stdin] : []),
  ...(request.stdout ? [StreamType.stdout] : []),
  ...(request.stderr ? [StreamType.stderr] : []),
  ...(request.tty && protocol.hasResize ? [StreamType.resize] : []),
];

/** Runs the session once all its streams are there. */
const startProcess = async (
  request: ExecRequest | AttachRequest,
  protocol: ProcessProtocol,
  streams: ReadonlyMap<string, SpdyStream>,
  context: SessionContext,
): Promise<void> => {
  const get = (type: string): SpdyStream | null => streams.get(type) ?? null;
  const error = get(StreamType.error);
  if (error === null) return;
  const stdin = get(StreamType.stdin);
  // The client learns that nobody reads its input any more.
  stdin?.input.on('close', () => stdin.output.end());
  const channels = {
    stdin: stdin?.input ?? null,
    stdout: get(StreamType.stdout)?.output ?? null,
    stderr: get(StreamType.stderr)?.output ?? null,
    error: error.output,
    resize: get(StreamType.resize)?.input ?? null,
    hasStructuredStatus: protocol.hasStructuredStatus,
  };
  await runProcessSession(request, channels, context);
};

/** Serves an Exec or Attach over `transport`; the connection ends with the session. */
export const serveProcessOverSpdy = (
  transport: Duplex,
  end: EndTransport,
  request: ExecRequest | AttachRequest,
  protocol: ProcessProtocol,
  context: ConnectionContext,
): SpdyConnection => {
  const streams = new Map<string, SpdyStream>();
  const missing = new Set(wantedTypes(request, protocol));
  const timer = setTimeout(() => {
    context.log.warn(`a client did not open its streams within ${context.streamCreationTimeoutMs} ms`);
    connection.close();
  }, context.streamCreationTimeoutMs);

  const onStream = (stream: SpdyStream): void => {
    const type = stream.headers.get(typeHeader) ?? '';
    streams.set(type, stream);
    // Nobody reads what a client says on the streams that it was to listen to.
    if (type !== StreamType.stdin && type !== StreamType.resize) stream.input.resume();
    if (!missing.delete(type) || missing.size > 0) return;
    clearTimeout(timer);
    void startProcess(request, protocol, streams, context).then(connection.close);
  };
  const connection = serveSpdy(transport, {
    streamsMax: processStreamsMax,
    holdBytesMax: processHoldBytesMax,
    accepts: (headers: SpdyHeaders) => {
      const type = headers.get(typeHeader) ?? '';
      return processTypes.has(type) && !streams.has(type);
    },
    onStream,
    onData: context.onData,
    onProtocolError: complainTo(context),
    end,
  });
  void connection.closed.then(() => {
    clearTimeout(timer);
  });
  return connection;
};

const portOf = (headers: SpdyHeaders): number | null => portFromText(headers.get(portHeader) ?? '');

/** Old clients give no id, but open the error stream first and its data stream next. */
const requestIdOf = ({ id, headers }: SpdyStream): string =>
  headers.get(requestIdHeader) ?? `stream ${headers.get(typeHeader) === StreamType.error ? id : id - 2}`;

/** The first stream of a pair, whose other has not come yet. */
interface HalfPair {
  readonly stream: SpdyStream;
  readonly port: number;
  readonly timer: NodeJS.Timeout;
  /** What comes of it: its other stream, or the reason why none does. */
  readonly pair: (other: SpdyStream) => void;
  readonly giveUp: (reason: string) => void;
}

const isErrorStream = ({ headers }: SpdyStream): boolean => headers.get(typeHeader) === StreamType.error;

const streamsOf = ({ input, output }: SpdyStream): PortStreams => ({ input, output });

/** Serves any number of forwarded connections over `transport`, until the client ends it. */
export const servePortsOverSpdy = (
  transport: Duplex,
  end: EndTransport,
  request: PortForwardRequest,
  context: ConnectionContext,
): SpdyConnection => {
  /** By request id: streams whose other half has not come yet. */
  const lonely = new Map<string, HalfPair>();

  const forward = async (port: number, error: SpdyStream, data: Promise<SpdyStream>): Promise<void> => {
    error.input.resume();
    const both = data.then(streamsOf);
    // It may fail before anybody waits for it.
    both.catch(() => undefined);
    const channels: PortChannels = { port, streams: both, error: error.output };
    if (await runPortForward(request, channels, context)) return;
    await data.then(
      (stream) => stream.reset(),
      () => undefined,
    );
  };

  /** Clients open the error stream first, and wait for the answer: the session begins meanwhile, and its record is on its way. */
  const beginPair = (requestId: string, port: number, stream: SpdyStream): void => {
    const other = Promise.withResolvers<SpdyStream>();
    other.promise.catch(() => undefined);
    const giveUp = (reason: string): void => {
      lonely.delete(requestId);
      clearTimeout(timer);
      other.reject(new FailureError('Cancelled', reason));
      if (!isErrorStream(stream)) stream.reset();
    };
    const timer = setTimeout(() => {
      giveUp(`the data stream of request ${requestId} did not come in time`);
    }, context.streamCreationTimeoutMs);
    lonely.set(requestId, { stream, port, timer, pair: other.resolve, giveUp });
    if (isErrorStream(stream)) void forward(port, stream, other.promise);
  };

  const onStream = (stream: SpdyStream): void => {
    const requestId = requestIdOf(stream);
    const port = portOf(stream.headers);
    if (port === null) return;
    const half = lonely.get(requestId);
    if (half === undefined) return beginPair(requestId, port, stream);
    if (isErrorStream(half.stream) === isErrorStream(stream)) return stream.reset();
    if (half.port !== port) {
      stream.reset();
      return half.giveUp(`the streams of request ${requestId} name different ports`);
    }
    lonely.delete(requestId);
    clearTimeout(half.timer);
    if (isErrorStream(stream)) void forward(port, stream, Promise.resolve(half.stream));
    else half.pair(stream);
  };

  const connection = serveSpdy(transport, {
    streamsMax: portStreamsMax,
    holdBytesMax: portHoldBytesMax,
    accepts: (headers) => {
      const type = headers.get(typeHeader);
      return portOf(headers) !== null && (type === StreamType.error || type === StreamType.data);
    },
    onStream,
    onData: context.onData,
    onProtocolError: complainTo(context),
    end,
  });
  void connection.closed.then(() => {
    for (const { giveUp } of [...lonely.values()]) giveUp('the client has gone');
  });
  return connection;
};
