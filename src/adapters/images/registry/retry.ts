/**
 * Patience with registries: servers are asked in their order, and when none could do it they are all asked again after
 * a pause that doubles, or as long as a server asked for. A server that gave a final answer is not asked again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { FailureError, type FailureReason, messageOf } from '../../../domain/model/errors.ts';
import { type Backoff, backoffMs } from '../../../platform/rpc/retry.ts';
import { RequestError } from './http.ts';

export interface RetryOptions {
  readonly attemptsMax: number;
  readonly retryDelayMs: number;
}

const DELAY_MS_MAX = 10_000;
/** Longer than this nobody waits for an image; the client tries again by itself. */
const RETRY_AFTER_MS_MAX = 60_000;
const JITTER = 0.25;

/** Prefix by which the kubelet tells an unreachable registry from a bad image (cri-api, errors.go). */
const UNAVAILABLE_PREFIX = 'RegistryUnavailable: ';

const asRequestError = (error: unknown): RequestError => {
  if (error instanceof RequestError) return error;
  if (error instanceof FailureError) {
    return new RequestError(error.failure.reason, error.failure.message, { retryable: false });
  }
  const message = messageOf(error);
  return new RequestError('HostFailed', message, { retryable: false });
};

/** Faults of this machine, which no other server mends. */
const isLocal = (reason: FailureReason): boolean =>
  reason === 'DiskFull' || reason === 'HostFailed' || reason === 'Bug';

const sentence = (text: string): string => (text.endsWith('.') ? text : `${text}.`);

/** The last server is the registry itself: what it said counts, and what the mirrors said explains it. */
const summarize = (failures: readonly RequestError[], what: string): FailureError => {
  const last = failures.at(-1);
  if (last === undefined)
    return new FailureError('RegistryFailed', `${UNAVAILABLE_PREFIX}No server may be asked for ${what}.`);
  const { reason } = last.failure;
  if (isLocal(reason)) return new FailureError(reason, last.failure.message);
  const others = failures.slice(0, -1).map(({ failure }) => failure.message);
  const before = others.length === 0 ? '' : ` (before that: ${others.join('; ')})`;
  const prefix = reason === 'RegistryFailed' ? UNAVAILABLE_PREFIX : '';
  return new FailureError(reason, sentence(`${prefix}Could not get ${what}: ${last.failure.message}${before}`));
};

export interface Attempts extends RetryOptions {
  /** What is got, for messages. */
  readonly what: string;
  readonly signal: AbortSignal;
  /** What attempts achieved on the way: while it grows, patience begins anew. */
  readonly gained?: () => number;
}

/** The first success of `attempt` among `servers`. Throws FailureError with what they said, or the signal's reason. */
export const tryServers = async <Server, T>(
  servers: readonly Server[],
  attempt: (server: Server) => Promise<T>,
  { attemptsMax, retryDelayMs, what, signal, gained = () => 0 }: Attempts,
): Promise<T> => {
  const failures = new Map<Server, RequestError>();
  const backoff: Backoff = { firstMs: retryDelayMs, lastMs: DELAY_MS_MAX };
  let left = servers;
  for (let round = 0; round < attemptsMax && left.length > 0; round += 1) {
    const gainedBefore = gained();
    let retryAfterMs = 0;
    for (const server of left) {
      try {
        return await attempt(server);
      } catch (error) {
        signal.throwIfAborted();
        const failure = asRequestError(error);
        failures.set(server, failure);
        if (isLocal(failure.failure.reason)) throw summarize([failure], what);
        retryAfterMs = Math.max(retryAfterMs, failure.retryAfterMs);
      }
    }
    left = left.filter((server) => failures.get(server)?.retryable === true);
    if (gained() > gainedBefore) round = -1;
    const isLastRound = round + 1 >= attemptsMax;
    if (left.length === 0 || isLastRound || retryAfterMs > RETRY_AFTER_MS_MAX) break;
    const pauseMs = backoffMs(backoff, Math.max(0, round) + 1) * (1 + JITTER * Math.random());
    await delay(Math.max(retryAfterMs, pauseMs), undefined, { signal });
  }
  throw summarize(
    servers.flatMap((server) => failures.get(server) ?? []),
    what,
  );
};
