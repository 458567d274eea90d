/**
 * Taking a connection over as a WebSocket. Owns what is the same for all of them: bounds, the chosen subprotocol, pongs.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { SessionContext } from './session.ts';

const messageBytesMax = 4_194_304;
/** A client that does not read gets no more pongs. */
const unreadBytesMax = 1_048_576;

export const offeredProtocolsHeader = 'sec-websocket-protocol';

export type TakeOver = (
  message: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  protocolName: string,
  log: SessionContext['log'],
  serve: (socket: WebSocket) => void,
) => void;

export const createTakeOver = (): TakeOver => {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
    autoPong: false,
  });
  const names = new WeakMap<IncomingMessage, string>();
  server.on('headers', (lines, message) => {
    const name = names.get(message) ?? '';
    if (name !== '') lines.push(`Sec-WebSocket-Protocol: ${name}`);
  });

  return (message, socket, head, protocolName, log, serve) => {
    // Kubernetes has a subprotocol whose name is not a token ("SPDY/3.1+..."), which the server would refuse to read.
    delete message.headers[offeredProtocolsHeader];
    names.set(message, protocolName);
    server.handleUpgrade(message, socket, head, (webSocket) => {
      webSocket.on('error', (error) => {
        log.warn(`a streaming client broke the protocol: ${error.message}`);
      });
      webSocket.on('ping', (data) => {
        if (webSocket.bufferedAmount < unreadBytesMax) webSocket.pong(data);
      });
      serve(webSocket);
    });
  };
};
