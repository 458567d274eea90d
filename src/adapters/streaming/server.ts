/**
 * The streaming server: takes the connections that clients make to the URLs they were given. A client can lose its own
 * connection by what it does, and nothing else. The meaning of tokens and the work of sessions are others' business.
 */
import { setMaxListeners } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerOptions, type ServerResponse } from 'node:http';
import { type AddressInfo, isIPv6 } from 'node:net';
import type { Duplex } from 'node:stream';
import { orAfter } from '../../platform/rpc/timeout.ts';
import { watchIdle } from '../../platform/rpc/idle.ts';
import {
  acceptedVersionsHeader,
  choose,
  namesIn,
  protocolVersionHeader,
  spdyPortProtocols,
  spdyProcessProtocols,
  spdyUpgrade,
} from './negotiate.ts';
import { type ConnectionContext, servePortsOverSpdy, serveProcessOverSpdy } from './spdy-sessions.ts';
import type { StreamingBackend, StreamingRequest, StreamingServer } from './types.ts';
import { type ContextOf, Refusal, refuse, type Upgrade } from './upgrade.ts';
import { type NamedSession, sessionIn } from './urls.ts';

/** When the server closes, sessions that were told to end have so long to tell their clients. */
const LAST_WORDS_MS = 1_000;

export interface StreamingServerOptions {
  readonly address: string;
  /** 0: one that is free. */
  readonly port: number;
  /** null: plain HTTP. */
  readonly tls: { readonly certPath: string; readonly keyPath: string } | null;
  readonly backend: StreamingBackend;
  /** The request that the token of a URL stands for, the first time; null otherwise. */
  readonly redeem: (named: NamedSession) => Promise<StreamingRequest | null>;
  /** A session that moves no byte for this long is ended. */
  readonly idleTimeoutMs: number;
  /** Time that a client has to open the streams of its session. */
  readonly streamCreationTimeoutMs: number;
  readonly log: { readonly warn: (message: string) => void };
  /** The last client has gone. */
  readonly onVacant: () => void;
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

const switchToSpdy = ({ socket, head }: Upgrade, protocolName: string): void => {
  const lines = ['Connection: Upgrade', `Upgrade: ${spdyUpgrade}`, `${protocolVersionHeader}: ${protocolName}`];
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
  if (head.length > 0) socket.unshift(head);
};

const upgradeToSpdy = (upgrade: Upgrade, contextOf: ContextOf): void => {
  const { message, socket, request } = upgrade;
  const offered = namesIn(message.headers[protocolVersionHeader]);
  const end = (): void => {
    socket.end();
  };
  if (request.kind === 'PortForward') {
    const chosen = choose(offered, spdyPortProtocols);
    if (chosen === null) {
      refuse(socket, Refusal.noProtocol, acceptedOf(spdyPortProtocols));
      return;
    }
    switchToSpdy(upgrade, chosen.name);
    servePortsOverSpdy(socket, end, request, contextOf(socket));
    return;
  }
  const chosen = choose(offered, spdyProcessProtocols);
  if (chosen === null) {
    refuse(socket, Refusal.noProtocol, acceptedOf(spdyProcessProtocols));
    return;
  }
  switchToSpdy(upgrade, chosen.name);
  serveProcessOverSpdy(socket, end, request, chosen.protocol, contextOf(socket));
};

/** Starts listening; rejects when the address is taken or the certificate cannot be read. */
export const createStreamingServer = async (options: StreamingServerOptions): Promise<StreamingServer> => {
  const { backend, idleTimeoutMs, streamCreationTimeoutMs, log } = options;
  /** Cuts off each client there is. */
  const live = new Set<() => void>();
  const keep = (socket: Duplex, cutOff: () => void): void => {
    live.add(cutOff);
    socket.once('close', () => {
      live.delete(cutOff);
      if (live.size === 0) options.onVacant();
    });
  };
  const server =
    options.tls === null
      ? createServer(httpOptions)
      : (await import('node:https')).createServer({ ...httpOptions, ...(await readTls(options.tls)) });
  server.maxConnections = connectionsMax;

  const requestOf = async ({ url = '' }: IncomingMessage): Promise<StreamingRequest | null> => {
    const named = sessionIn(url);
    return named === null ? null : options.redeem(named);
  };

  /** The session is watched from here on: idle, gone or closed, its signal says so before its streams close. */
  const contextOf = (socket: Duplex): ConnectionContext => {
    const controller = new AbortController();
    // Each forwarded connection may listen.
    setMaxListeners(0, controller.signal);
    const cutOff = (): void => {
      controller.abort();
      socket.destroy();
    };
    const idle = watchIdle(idleTimeoutMs, cutOff);
    socket.once('close', () => {
      idle.stop();
      controller.abort();
    });
    keep(socket, cutOff);
    return { backend, log, signal: controller.signal, streamCreationTimeoutMs, onData: idle.touch };
  };

  const upgrade = async (message: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    keep(socket, () => {
      socket.destroy();
    });
    const wanted = message.headers.upgrade?.toLowerCase() ?? '';
    const loadingSockets = wanted === 'websocket' ? import('./socket-upgrade.ts') : null;
    const [request, sockets] = await Promise.all([requestOf(message), loadingSockets]);
    if (socket.destroyed) return;
    if (request === null) refuse(socket, Refusal.notFound);
    else if (sockets !== null) sockets.upgradeToSocket({ message, socket, head, request }, contextOf, log);
    else if (wanted.includes(spdyUpgrade.toLowerCase())) upgradeToSpdy({ message, socket, head, request }, contextOf);
    else refuse(socket, Refusal.noUpgrade);
  };
  const answer = async (message: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { code, text } = (await requestOf(message)) === null ? Refusal.notFound : Refusal.noUpgrade;
    response.writeHead(code, { Connection: 'close' }).end(`${text}\n`);
  };

  server.on('upgrade', (message: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    upgrade(message, socket, head).catch(() => socket.destroy());
  });
  server.on('request', (message, response) => {
    answer(message, response).catch(() => response.destroy());
  });

  await new Promise<void>((listening, failed) => {
    server.once('error', failed);
    server.listen(options.port, options.address, () => {
      server.off('error', failed);
      listening();
    });
  });
  // No descriptors left, say: that is this client's loss, and the sessions there are go on.
  server.on('error', (error) => log.warn(`a connection could not be accepted: ${error.message}`));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `${options.tls === null ? 'http' : 'https'}://${hostOf(options.address)}:${port}`,
    hasClients: () => live.size > 0,
    close: async () => {
      const closed = new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
      server.closeAllConnections();
      await orAfter(closed, LAST_WORDS_MS, undefined);
      for (const cutOff of live) cutOff();
      await closed;
    },
  };
};

/** Tells a client that offered the wrong protocols which would do. */
function acceptedOf(protocols: ReadonlyMap<string, unknown>): readonly string[] {
  return [...protocols.keys()].map((name) => `${acceptedVersionsHeader}: ${name}`);
}
