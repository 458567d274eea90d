/**
 * HTTP/1.1 to registries: one request, its response as a stream. Bounded in every way a server could stall or flood:
 * time to connect, time without a byte, number of redirects, size of what is read whole. Credentials and configured
 * headers never leave the server they are for: a redirect elsewhere is followed without them, and from a server that is
 * not on this machine never to it. No retries here.
 */
import { Agent as HttpAgent, type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { FailureError, type FailureReason } from '../../../domain/model/errors.ts';
import { watchIdle } from '../../../platform/rpc/idle.ts';
import { timerMs } from '../../../platform/rpc/timeout.ts';
import { connectionProblem } from './connection-errors.ts';
import { isLoopback, type TlsMaterial } from './hosts.ts';
import { guardedLookup, isLocalAddress, LocalAddressError, type Lookup, lookupBySystem } from './local-addresses.ts';
import { createPace, type Progress } from './pace.ts';

const REDIRECTS_MAX = 10;
const DISCARD_BYTES_MAX = 64 * 1024;
const SOCKETS_PER_HOST_MAX = 16;

/** A request that failed, and whether the same server may do better when it is asked again. */
export class RequestError extends FailureError {
  readonly retryable: boolean;
  /** As the server asked for. */
  readonly retryAfterMs: number;
  constructor(reason: FailureReason, message: string, options: { retryable: boolean; retryAfterMs?: number }) {
    super(reason, message);
    this.retryable = options.retryable;
    this.retryAfterMs = options.retryAfterMs ?? 0;
  }
}

export interface HttpRequest {
  readonly url: URL;
  readonly method: 'GET' | 'HEAD' | 'POST';
  /** Sent to `url`'s own origin only. */
  readonly headers: OutgoingHttpHeaders;
  /** Sent wherever redirects lead. */
  readonly publicHeaders?: OutgoingHttpHeaders;
  readonly body?: string;
  readonly tls: TlsMaterial;
  readonly dialTimeoutMs: number;
  /** A server elsewhere named `url`, so that it must not lead to this machine; without it redirects only must not. */
  readonly isNamedFromAfar?: boolean;
}

export interface HttpResponse {
  readonly status: number;
  readonly header: (name: string) => string;
  /** Stalls and ends of the connection throw RequestError. To be read or discarded. */
  readonly body: AsyncIterable<Buffer>;
  readonly discard: () => Promise<void>;
  /** True when the server that was asked answered itself. */
  readonly isDirect: boolean;
  /** True when the server that was asked first is on this machine or only in reach of it. */
  readonly isLocal: boolean;
  /** Values of the headers that were sent to that server alone: what comes back may quote them. */
  readonly confided: readonly string[];
}

export interface HttpClient {
  /** Follows redirects of GET and HEAD. Throws RequestError, or the signal's reason. */
  readonly send: (request: HttpRequest, signal: AbortSignal) => Promise<HttpResponse>;
  readonly close: () => void;
}

/** A URL for messages: what follows the path may hold signatures and tokens. */
export const shownUrl = (url: URL): string => `${url.protocol}//${url.host}${url.pathname}`;

const ledHere = (url: URL, by: string): RequestError => {
  const what = `${by} leads to ${shownUrl(url)}, on this machine: only a registry on this machine may do that`;
  return new RequestError('RegistryFailed', what, { retryable: false });
};

/** Refuses to be sent to an address of this machine by a server that is not on it. */
export const refuseLocal = (url: URL, by: string): void => {
  if (isLoopback(url.host) || isLocalAddress(url.hostname)) throw ledHere(url, by);
};

const unreachable = (url: URL, error: unknown): RequestError => {
  if (error instanceof LocalAddressError) return ledHere(url, 'a server elsewhere');
  const { detail, retryable } = connectionProblem(error);
  return new RequestError('RegistryFailed', `${shownUrl(url)} can't be reached: ${detail}`, { retryable });
};

const tooLate = (url: URL, what: string, timeoutMs: number): RequestError => {
  const words = `${shownUrl(url)} ${what} ${timeoutMs} ms, as long as images.pull_progress_timeout allows`;
  return new RequestError('RegistryFailed', words, { retryable: false });
};

const stalled = (url: URL, timeoutMs: number): RequestError => tooLate(url, 'sent nothing for', timeoutMs);

/** Headers that come one by one, and hints before an answer, are none. */
const unanswered = (url: URL, timeoutMs: number): RequestError => tooLate(url, 'gave no answer within', timeoutMs);

/** The machine's own authorities, with Node's where it has none: each once, though a machine may have it in several files. */
const trustedAuthorities = (): readonly string[] => {
  const system = new Set(getCACertificates('system'));
  return system.size > 0 ? [...system] : getCACertificates('bundled');
};

/**
 * What connections are made with, one for all that trust the same: an agent would make one for each connection, and to read
 * the authorities of a machine takes as long as a turn of a link across a country.
 */
const createContexts = (): ((tls: TlsMaterial) => SecureContext) => {
  const contexts = new Map<string, SecureContext>();
  let authorities: readonly string[] | null = null;
  return ({ ca, clientPairs }) => {
    const key = JSON.stringify([ca, clientPairs]);
    const known = contexts.get(key);
    if (known !== undefined) return known;
    authorities ??= trustedAuthorities();
    const context = createSecureContext({
      ca: [...authorities, ...ca],
      cert: clientPairs.map(({ cert }) => cert),
      key: clientPairs.map((pair) => pair.key),
    });
    contexts.set(key, context);
    return context;
  };
};

type Agent = HttpAgent | HttpsAgent;

const noTls: TlsMaterial = { ca: [], clientPairs: [], skipVerify: false };

/** What is on this machine is not asked for by way of a proxy elsewhere. */
const createAgent = (url: URL, tls: TlsMaterial, contextOf: (tls: TlsMaterial) => SecureContext): Agent => {
  const common = {
    keepAlive: true,
    maxSockets: SOCKETS_PER_HOST_MAX,
    ...(isLoopback(url.host) ? {} : { proxyEnv: process.env }),
  };
  if (url.protocol === 'http:') return new HttpAgent(common);
  return new HttpsAgent({ ...common, secureContext: contextOf(tls), rejectUnauthorized: !tls.skipVerify });
};

const trickling = (url: URL, { timeoutMs, bytesMin }: Progress): RequestError => {
  const what = `${shownUrl(url)} sent less than ${bytesMin} bytes in ${timeoutMs} ms, as images.pull_progress_min and images.pull_progress_timeout want`;
  return new RequestError('RegistryFailed', what, { retryable: false });
};

async function* pieces(url: URL, message: IncomingMessage, progress: Progress): AsyncGenerator<Buffer> {
  const idleTimeoutMs = timerMs(progress.timeoutMs);
  const idle = watchIdle(idleTimeoutMs, () => message.destroy(stalled(url, idleTimeoutMs)));
  const isTooLittle = createPace(progress);
  let fromMs = performance.now();
  try {
    for await (const chunk of message as AsyncIterable<Buffer>) {
      idle.touch();
      if (isTooLittle(performance.now() - fromMs, chunk.length)) throw trickling(url, progress);
      yield chunk;
      fromMs = performance.now();
    }
  } catch (error) {
    throw error instanceof FailureError ? error : unreachable(url, error);
  } finally {
    idle.stop();
    message.destroy();
  }
}

const responseOf = (
  message: IncomingMessage,
  body: AsyncIterable<Buffer>,
  about: Pick<HttpResponse, 'isDirect' | 'isLocal' | 'confided'>,
): HttpResponse => {
  return {
    status: message.statusCode ?? 0,
    header: (name) => {
      const value = message.headers[name];
      return Array.isArray(value) ? value.join(', ') : (value ?? '');
    },
    body,
    ...about,
    discard: async () => {
      let bytes = 0;
      try {
        for await (const chunk of body) {
          bytes += chunk.length;
          if (bytes > DISCARD_BYTES_MAX) return;
        }
      } catch {
        // Nobody wanted it.
      }
    },
  };
};

const redirected = (from: URL, location: string, origin: URL, isGuarded: boolean): URL => {
  if (!URL.canParse(location, from.href)) {
    throw new RequestError('RegistryFailed', `${shownUrl(from)} redirects to something that is no address`, {
      retryable: false,
    });
  }
  const to = new URL(location, from);
  if (isGuarded) refuseLocal(to, `a redirect of ${shownUrl(from)}`);
  // A server that is spoken to in plain text may go on so itself; nobody else becomes one by its word.
  const isAllowed =
    to.protocol === 'https:' || (to.protocol === 'http:' && (isLoopback(to.host) || to.origin === origin.origin));
  if (isAllowed) return to;
  throw new RequestError('RegistryFailed', `${shownUrl(from)} redirects to ${shownUrl(to)}, which is not https`, {
    retryable: false,
  });
};

/** Keeps connections for reuse until it is closed. `progress` bounds the time without a byte of any response, or with few. */
export const createHttpClient = (progress: Progress, lookup: Lookup = lookupBySystem): HttpClient => {
  const idleTimeoutMs = timerMs(progress.timeoutMs);
  const agents = new Map<string, Agent>();
  /** Connections to the very host of a URL, by its name, and not to a proxy. */
  const direct = new WeakSet<object>();
  const contextOf = createContexts();

  /** Connections that were made without looking at the address are not reused where it matters. */
  const agentFor = (url: URL, tls: TlsMaterial, isGuarded: boolean): Agent => {
    const key = JSON.stringify([url.protocol, isLoopback(url.host), isGuarded, url.protocol === 'http:' ? noTls : tls]);
    const agent = agents.get(key) ?? createAgent(url, tls, contextOf);
    agents.set(key, agent);
    return agent;
  };

  const exchange = (
    request: HttpRequest,
    url: URL,
    headers: OutgoingHttpHeaders,
    isGuarded: boolean,
    signal: AbortSignal,
  ): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const start = url.protocol === 'http:' ? httpRequest : httpsRequest;
      const agent = agentFor(url, request.tls, isGuarded);
      const connecting = { agent, lookup: guardedLookup(lookup, isGuarded ? url.hostname : null) };
      const outgoing = start(url, { method: request.method, headers, ...connecting, signal });
      let deadline = setTimeout(() => outgoing.destroy(unanswered(url, idleTimeoutMs)), idleTimeoutMs);
      outgoing.once('socket', (socket) => {
        if (!socket.connecting) return;
        socket.on('lookup', (_error, _address, _family, host) => {
          if (host === url.hostname) direct.add(socket);
        });
        clearTimeout(deadline);
        deadline = setTimeout(() => {
          outgoing.destroy(new Error(`no connection within ${request.dialTimeoutMs} ms`));
        }, timerMs(request.dialTimeoutMs));
        socket.once('connect', () => {
          clearTimeout(deadline);
          deadline = setTimeout(() => outgoing.destroy(unanswered(url, idleTimeoutMs)), idleTimeoutMs);
        });
      });
      outgoing.once('response', (message) => {
        clearTimeout(deadline);
        resolve(message);
      });
      outgoing.once('error', (error) => {
        clearTimeout(deadline);
        if (signal.aborted) reject(signal.reason as Error);
        else reject(error instanceof FailureError ? error : unreachable(url, error));
      });
      outgoing.end(request.body);
    });

  const send: HttpClient['send'] = async (request, signal) => {
    let url = request.url;
    let isGuarded = request.isNamedFromAfar === true;
    let isLocal = false;
    const confided = Object.values(request.headers).flatMap((value) => [value ?? []].flat().map(String));
    for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
      signal.throwIfAborted();
      const isDirect = url.origin === request.url.origin;
      const headers = {
        'user-agent': 'scribe',
        'accept-encoding': 'identity',
        ...request.publicHeaders,
        ...(isDirect ? request.headers : {}),
      };
      const tls = isDirect ? request.tls : { ...request.tls, clientPairs: [] };
      const message = await exchange({ ...request, tls }, url, headers, isGuarded, signal);
      if (redirects === 0) {
        const { socket } = message;
        const isOnIt = direct.has(socket) && isLocalAddress(socket.remoteAddress ?? '');
        isLocal = isLoopback(url.host) || isLocalAddress(url.hostname) || isOnIt;
        isGuarded ||= !isLocal;
      }
      const response = responseOf(message, pieces(url, message, progress), { isDirect, isLocal, confided });
      const location = response.header('location');
      const isRedirect =
        [301, 302, 303, 307, 308].includes(response.status) && location !== '' && request.method !== 'POST';
      if (!isRedirect) return response;
      await response.discard();
      url = redirected(url, location, request.url, isGuarded);
    }
    throw new RequestError('RegistryFailed', `${shownUrl(request.url)} redirects more than ${REDIRECTS_MAX} times`, {
      retryable: false,
    });
  };

  return {
    send,
    close: () => {
      for (const agent of agents.values()) agent.destroy();
    },
  };
};

/** The whole body. Throws RequestError ImageInvalid when it is larger than `bytesMax`. */
export const readWhole = async (response: HttpResponse, bytesMax: number, what: string): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new RequestError('ImageInvalid', `${what} is larger than ${bytesMax} bytes`, { retryable: false });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};
