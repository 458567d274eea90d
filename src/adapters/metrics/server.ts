/**
 * The HTTP server that metrics are read from: one path, few connections, short waits. A request is answered or refused,
 * and can do nothing else.
 */
import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../../domain/model/errors.ts';

const CONNECTIONS_MAX = 32;
const TIMEOUT_MS = 10_000;
/** A client that asks for more before it has its answer is cut off. */
const REQUESTS_MAX = 1;
const PATH = '/metrics';

export interface MetricsServerOptions {
  readonly host: string;
  /** 0: one that is free. */
  readonly port: number;
  readonly contentType: string;
  readonly text: () => Promise<string>;
  /** A request has so long to arrive, and a connection on which nothing moves is closed then. */
  readonly timeoutMs?: number;
}

export interface MetricsServer {
  readonly url: string;
  readonly close: () => void;
}

const answer = (response: ServerResponse, code: number, body: string, contentType = 'text/plain; charset=utf-8') => {
  const headers = { 'content-type': contentType, 'content-length': Buffer.byteLength(body), connection: 'close' };
  response.writeHead(code, headers);
  response.end(response.req.method === 'HEAD' ? undefined : body);
};

/** Rejects with the system's error when the address cannot be listened on. */
export const startMetricsServer = async (options: MetricsServerOptions): Promise<MetricsServer> => {
  const { host, port, contentType, text, timeoutMs = TIMEOUT_MS } = options;
  let reading: Promise<string> | null = null;
  /** Whoever asks while the figures are read gets the same. */
  const read = (): Promise<string> => {
    reading ??= text().finally(() => {
      reading = null;
    });
    return reading;
  };
  const timeouts = { requestTimeout: timeoutMs, connectionsCheckingInterval: timeoutMs / 2 };
  const server = createServer(timeouts, (request, response) => {
    request.resume();
    const [path] = (request.url ?? '').split('?');
    if (path !== PATH) return answer(response, 404, `There is ${PATH}.\n`);
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(response, 405, 'GET or HEAD.\n');
    read().then(
      (body) => answer(response, 200, body, contentType),
      (error: unknown) => answer(response, 500, `${messageOf(error)}\n`),
    );
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.maxRequestsPerSocket = REQUESTS_MAX;
  server.timeout = timeoutMs;
  server.on('dropRequest', (_request, socket) => socket.destroy());
  server.listen(port, host);
  await once(server, 'listening');
  // Those of single connections are answered by the server; this one must not end the daemon.
  server.on('error', () => undefined);
  const { address, family, port: actual } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${actual}${PATH}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
};
