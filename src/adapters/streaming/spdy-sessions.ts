/**
 * Sessions whose streams a client opens one by one over SPDY: those of a process by their type, those of forwarded ports
 * in pairs. Owns waiting for them, for a bounded time; frames are the connection's business.
 */
import type { Duplex } from 'node:stream';
import { type ProcessProtocol, portFromText } from './negotiate.ts';
import { type PortChannels, runPortForward, runProcessSession, type SessionContext } from './session.ts';
import { type SpdyConnection, type SpdyStream, serveSpdy } from './spdy/connection.ts';
import type { SpdyHeaders } from './spdy/headers.ts';
import type { AttachRequest, ExecRequest, PortForwardRequest } from './types.ts';

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

interface HalfPair {
  readonly stream: SpdyStream;
  readonly timer: NodeJS.Timeout;
}

/** Serves any number of forwarded connections over `transport`, until the client ends it. */
export const servePortsOverSpdy = (
  transport: Duplex,
  end: EndTransport,
  request: PortForwardRequest,
  context: ConnectionContext,
): SpdyConnection => {
  /** By request id: streams whose other half has not come yet. */
  const lonely = new Map<string, HalfPair>();

  const giveUp = (requestId: string, { stream }: HalfPair): void => {
    lonely.delete(requestId);
    if (stream.headers.get(typeHeader) === StreamType.error) {
      stream.output.end(`the data stream of request ${requestId} did not come in time`);
    } else stream.reset();
  };

  const forward = async (data: SpdyStream, error: SpdyStream, port: number): Promise<void> => {
    error.input.resume();
    const channels: PortChannels = { port, input: data.input, output: data.output, error: error.output };
    if (!(await runPortForward(request, channels, context))) data.reset();
  };

  const onStream = (stream: SpdyStream): void => {
    const requestId = requestIdOf(stream);
    const other = lonely.get(requestId);
    if (other === undefined) {
      const timer = setTimeout(() => {
        giveUp(requestId, half);
      }, context.streamCreationTimeoutMs);
      const half: HalfPair = { stream, timer };
      lonely.set(requestId, half);
      return;
    }
    const isError = stream.headers.get(typeHeader) === StreamType.error;
    if (isError === (other.stream.headers.get(typeHeader) === StreamType.error)) {
      stream.reset();
      return;
    }
    clearTimeout(other.timer);
    lonely.delete(requestId);
    const [data, error] = isError ? [other.stream, stream] : [stream, other.stream];
    const port = portOf(data.headers);
    if (port !== null) void forward(data, error, port);
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
    for (const { timer } of lonely.values()) clearTimeout(timer);
  });
  return connection;
};
