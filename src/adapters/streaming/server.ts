/**
 * The streaming server: hands out URLs that work once, and takes the connections that clients make to them. Whatever a
 * client does costs it its own connection and nothing else. What a session does is the backend's business.
 */
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, isIPv6 } from 'node:net';
import type { Duplex } from 'node:stream';
import { createTokens } from './tokens.ts';
import type { StreamingBackend, StreamingRequest, StreamingServer } from './types.ts';

export interface StreamingServerOptions {
  readonly address: string;
  /** 0: one that is free. */
  readonly port: number;
  /** null: plain HTTP. */
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  readonly backend: StreamingBackend;
  /** A session that moves no byte for this long is ended. */
  readonly idleTimeoutMs: number;
  /** Time that a client has to open the streams of its session. */
  readonly streamCreationTimeoutMs: number;
  readonly log: { readonly warn: (message: string) => void };
  readonly nowMs: () => number;
}

/** A request has this long to arrive, before it has shown a token. */
const requestTimeoutMs = 10_000;
const requestHeaderBytesMax = 16_384;
const connectionsMax = 4096;

const httpOptions: ServerOptions = {
  headersTimeout: requestTimeoutMs,
  requestTimeout: requestTimeoutMs,
  connectionsCheckingInterval: requestTimeoutMs / 2,
  maxHeaderSize: requestHeaderBytesMax,
  keepAlive: true,
  noDelay: true,
};

const pathOfKind = { Exec: 'exec', Attach: 'attach', PortForward: 'portforward' } as const satisfies Record<
  StreamingRequest['kind'],
  string
>;

/** An address that can be connected to: a server that listens everywhere is reached on the loopback device. */
const hostOf = (address: string): string => {
  if (address === '0.0.0.0') return '127.0.0.1';
  if (address === '::') return '[::1]';
  return isIPv6(address) ? `[${address}]` : address;
};

const readTls = async ({ certPath, keyPath }: { readonly certPath: string; readonly keyPath: string }) => {
  const [cert, key] = await Promise.all([readFile(certPath), readFile(keyPath)]);
  return { cert, key, minVersion: 'TLSv1.2' as const };
};

/** Starts listening; rejects when the address is taken or the certificate can not be read. */
export const createStreamingServer = async (options: StreamingServerOptions): Promise<StreamingServer> => {
  const tokens = createTokens(options.nowMs);
  const server =
    options.tls === null
      ? createServer(httpOptions)
      : createTlsServer({ ...httpOptions, ...(await readTls(options.tls)) });
  server.maxConnections = connectionsMax;
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();

  const requestOf = ({ url }: IncomingMessage): StreamingRequest | null => {
    const [, path = '', token = ''] = new URL(url ?? '/', 'http://localhost').pathname.split('/');
    const request = tokens.redeem(token);
    return request !== null && pathOfKind[request.kind] === path ? request : null;
  };
  server.on('upgrade', (message: IncomingMessage, socket: Duplex) => {
    const status = requestOf(message) === null ? '404 Not Found' : '501 Not Implemented';
    socket.on('error', () => socket.destroy());
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  });

  await new Promise<void>((listening, failed) => {
    server.once('error', failed);
    server.listen(options.port, options.address, () => {
      server.off('error', failed);
      listening();
    });
  });
  server.on('error', reject);
  const { port } = server.address() as AddressInfo;
  const base = `${options.tls === null ? 'http' : 'https'}://${hostOf(options.address)}:${port}`;
  return {
    urlFor: (request) => `${base}/${pathOfKind[request.kind]}/${tokens.issue(request)}`,
    ended,
    close: async () => {
      await new Promise<void>((closed) => {
        server.close(() => {
          closed();
        });
        server.closeAllConnections();
      });
      resolve();
    },
  };
};
