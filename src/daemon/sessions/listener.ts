/**
 * Hands out the URLs of sessions, and keeps the tokens in them. Has the thread that clients then come to there from the first URL
 * on and while somebody needs it. When it breaks down, its sessions have lost their clients, and the next URL starts another.
 *
 *   URL ──> thread ──> no session, client or token for idleMs ──> it ends, and its memory with it ──> next URL ──> another
 */
import { createTokens } from '../../adapters/streaming/tokens.ts';
import type { StreamingRequest } from '../../adapters/streaming/types.ts';
import { urlOf } from '../../adapters/streaming/urls.ts';
import { startThread, type Thread, type ThreadSources } from './start-thread.ts';

export interface SessionListenerOptions extends ThreadSources {
  readonly nowMs: () => number;
  /** A thread that nobody needs ends after so long; IDLE_MS unless told. */
  readonly idleMs?: number;
}

export interface SessionListener {
  /**
   * Listens from now on, until it is closed, instead of from the first URL on and while it is needed. Rejects when the address
   * is taken, say.
   */
  readonly start: () => Promise<void>;
  /** The address of a session, good once and for a minute. Rejects when too many wait to be used. */
  readonly urlFor: (request: StreamingRequest) => Promise<string>;
  /** Ends all sessions, telling their clients why, and stops listening. */
  readonly close: () => Promise<void>;
}

/**
 * Starting the thread anew takes some 60 ms, for which the first session waits. Soon enough for what it had of malloc to go the second
 * time that the daemon gives memory back after work (platform/linux/give-back.ts).
 */
const IDLE_MS = 25_000;

export const createSessionListener = (options: SessionListenerOptions): SessionListener => {
  const tokens = createTokens(options.nowMs);
  let thread: Thread | null = null;
  let staysOpen = false;
  let idle: NodeJS.Timeout | null = null;
  /** Settles when it is known whether the thread ends, and so where a URL has to lead. */
  let asked: Promise<void> = Promise.resolve();

  const stopWaiting = (): void => {
    if (idle !== null) clearTimeout(idle);
    idle = null;
  };

  /** From now on the thread has to be idle for its time again. */
  const used = (): void => {
    stopWaiting();
    if (staysOpen || thread === null) return;
    idle = setTimeout(() => {
      asked = endIfIdle();
    }, options.idleMs ?? IDLE_MS).unref();
  };

  const endIfIdle = async (): Promise<void> => {
    if (tokens.areWaiting()) used();
    else await thread?.endIfIdle();
  };

  const running = (): Thread => {
    if (thread !== null) return thread;
    const started = startThread(options, tokens.redeem, {
      onUsed: used,
      onEnd: () => {
        if (thread === started) thread = null;
      },
    });
    thread = started;
    return started;
  };

  return {
    start: async () => {
      staysOpen = true;
      await running().baseUrl;
    },
    urlFor: async (request) => {
      await asked;
      const baseUrl = await running().baseUrl;
      used();
      return urlOf(baseUrl, { kind: request.kind, token: tokens.issue(request) });
    },
    close: async () => {
      staysOpen = true;
      stopWaiting();
      await thread?.close();
    },
  };
};
