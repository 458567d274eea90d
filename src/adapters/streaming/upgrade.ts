/** A connection that asks to become a session: what is known of it, and what it is answered, in HTTP, where it does not. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ConnectionContext } from './spdy-sessions.ts';
import type { StreamingRequest } from './types.ts';

export interface Upgrade {
  readonly message: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly request: StreamingRequest;
}

/** The session of a connection, from here on. */
export type ContextOf = (socket: Duplex) => ConnectionContext;

export const Refusal = {
  notFound: { code: 404, reason: 'Not Found', text: 'This URL was used before, has expired, or never was.' },
  noUpgrade: { code: 400, reason: 'Bad Request', text: 'Upgrade to SPDY/3.1 or websocket.' },
  noProtocol: { code: 403, reason: 'Forbidden', text: 'None of the stream protocols offered is spoken here.' },
  badPorts: { code: 400, reason: 'Bad Request', text: 'Name 1 to 32 ports: in the call, or as ?port=80,81.' },
} as const;
type Refusal = (typeof Refusal)[keyof typeof Refusal];

export const refuse = (socket: Duplex, { code, reason, text }: Refusal, headers: readonly string[] = []): void => {
  const body = `${text}\n`;
  const lines = [
    `HTTP/1.1 ${code} ${reason}`,
    'Connection: close',
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    ...headers,
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
};
