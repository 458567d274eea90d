/**
 * Sessions over WebSocket: processes and ports on numbered channels, and ports by SPDY inside of messages.
 */
import { createWebSocketStream, type WebSocket } from 'ws';
import { divide, sayGoodbye } from './channels.ts';
import { type ProcessProtocol, portFromText } from './negotiate.ts';
import { runPortForward, runProcessSession } from './session.ts';
import { type ConnectionContext, servePortsOverSpdy } from './spdy-sessions.ts';
import type { AttachRequest, ExecRequest, PortForwardRequest } from './types.ts';

const Channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4 } as const;
/** A channel's number is one byte, and one digit or letter in base64. */
const socketPortsMax = 32;

/** The client hears of the session's first byte at the latest now: an empty message says that all is set up. */
const greet = (socket: WebSocket, channel: number, isBase64: boolean): void => {
  socket.send(isBase64 ? String(channel) : Buffer.of(channel), () => undefined);
};

/** Serves an Exec or Attach; the connection ends with the session. */
export const serveProcessOverSocket = async (
  socket: WebSocket,
  request: ExecRequest | AttachRequest,
  protocol: ProcessProtocol,
  context: ConnectionContext,
): Promise<void> => {
  const outputs = [
    ...(request.stdout ? [Channel.stdout] : []),
    ...(request.stderr ? [Channel.stderr] : []),
    Channel.error,
  ];
  const channels = divide(socket, {
    inputs: [...(request.stdin ? [Channel.stdin] : []), ...(request.tty ? [Channel.resize] : [])],
    outputs,
    isBase64: protocol.isBase64,
    hasHalfClose: protocol.hasHalfClose,
    onData: context.onData,
  });
  const error = channels.output(Channel.error);
  if (error === null) return;
  greet(socket, outputs[0] ?? Channel.error, protocol.isBase64);
  const { hasStructuredStatus } = protocol;
  await runProcessSession(
    request,
    {
      stdin: channels.input(Channel.stdin),
      stdout: channels.output(Channel.stdout),
      stderr: channels.output(Channel.stderr),
      error,
      resize: channels.input(Channel.resize),
      hasStructuredStatus,
    },
    context,
  );
  channels.close();
};

/** The ports that a session over channels is about: those that the call named, or else the URL; null if they are wrong. */
export const portsOf = (request: PortForwardRequest, query: URLSearchParams): readonly number[] | null => {
  const named = query.getAll('port').flatMap((text) => text.split(','));
  const ports = request.ports.length > 0 ? request.ports : named.map(portFromText);
  const valid = ports.filter((port) => port !== null);
  return ports.length >= 1 && ports.length <= socketPortsMax && valid.length === ports.length ? valid : null;
};

/** Serves `ports`, a data channel and an error channel each; the connection ends when all have ended. */
export const servePortsOverSocket = async (
  socket: WebSocket,
  request: PortForwardRequest,
  ports: readonly number[],
  isBase64: boolean,
  context: ConnectionContext,
): Promise<void> => {
  const channels = divide(socket, {
    inputs: ports.map((_, index) => 2 * index),
    outputs: ports.flatMap((_, index) => [2 * index, 2 * index + 1]),
    isBase64,
    hasHalfClose: false,
    onData: context.onData,
  });
  const forward = async (port: number, index: number): Promise<void> => {
    const input = channels.input(2 * index);
    const output = channels.output(2 * index);
    const error = channels.output(2 * index + 1);
    if (input === null || output === null || error === null) return;
    // Both channels begin with their port, little-endian.
    const portBytes = Buffer.of(port & 0xff, port >>> 8);
    output.write(portBytes);
    error.write(portBytes);
    await runPortForward(request, { port, streams: Promise.resolve({ input, output }), error }, context);
  };
  await Promise.all(ports.map(forward));
  channels.close();
};

/** Serves forwarded connections by SPDY inside of messages, until the client ends it. */
export const tunnelPorts = (socket: WebSocket, request: PortForwardRequest, context: ConnectionContext): void => {
  const transport = createWebSocketStream(socket);
  servePortsOverSpdy(
    transport,
    () => {
      sayGoodbye(socket);
    },
    request,
    context,
  );
};
