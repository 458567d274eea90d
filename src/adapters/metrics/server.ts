/**
 * The HTTP server that metrics are read from: one path, few connections, short waits. What a client sends can do nothing
 * but be answered or refused.
 */
import { createServer, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../../domain/errors.ts';

const CONNECTIONS_MAX = 32;
const REQUEST_TIMEOUT_MS = 10_000;
const PATH = '/metrics';

export interface MetricsServerOptions {
  readonly host: string;
  /** 0: one that is free. */
  readonly port: number;
  readonly contentType: string;
  readonly text: () => Promise<string>;
}

export interface MetricsServer {
  readonly url: string;
  readonly close: () => void;
}

const answer = (response: ServerResponse, code: number, body: string, contentType = 'text/plain; charset=utf-8') => {
  response.writeHead(code, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) });
  response.end(response.req.method === 'HEAD' ? undefined : body);
};

/** Rejects with the system's error when the address can not be listened on. */
export const startMetricsServer = async (options: MetricsServerOptions): Promise<MetricsServer> => {
  const { host, port, contentType, text } = options;
  const server = createServer({ requestTimeout: REQUEST_TIMEOUT_MS }, (request, response) => {
    request.resume();
    const [path] = (request.url ?? '').split('?');
    if (path !== PATH) return answer(response, 404, `There is ${PATH}.\n`);
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(response, 405, 'GET or HEAD.\n');
    text().then(
      (body) => answer(response, 200, body, contentType),
      (error: unknown) => answer(response, 500, `${messageOf(error)}\n`),
    );
  });
  server.maxConnections = CONNECTIONS_MAX;
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
