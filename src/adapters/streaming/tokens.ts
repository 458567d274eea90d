/**
 * One-use tokens: each stands for one session that a call was granted. Kept under a hash of the token, so that looking
 * one up takes as long for a near miss as for any other. Bounded in time and number. Knows nothing of HTTP.
 */
import { createHash, randomBytes } from 'node:crypto';
import { FailureError } from '../../domain/model/errors.ts';
import type { StreamingRequest } from './types.ts';
import type { NamedSession } from './urls.ts';

export const tokenLifetimeMs = 60_000;
export const tokensMax = 1000;
const tokenBytes = 32;

export interface Tokens {
  readonly issue: (request: StreamingRequest) => string;
  /** The request behind a token, the first time within its lifetime, if it is of the kind; null otherwise. */
  readonly redeem: (named: NamedSession) => StreamingRequest | null;
  /** Whether somebody may still come with one. */
  readonly areWaiting: () => boolean;
}

interface Grant {
  readonly request: StreamingRequest;
  readonly expiresAtMs: number;
}

const keyOf = (token: string): string => createHash('sha256').update(token).digest('base64');

export const createTokens = (nowMs: () => number): Tokens => {
  /** In the order of issue, which is the order of expiry. */
  const grants = new Map<string, Grant>();

  const forgetExpired = (): void => {
    const now = nowMs();
    for (const [key, { expiresAtMs }] of grants) {
      if (expiresAtMs > now) return;
      grants.delete(key);
    }
  };

  return {
    issue: (request) => {
      forgetExpired();
      if (grants.size >= tokensMax) {
        throw new FailureError(
          'TooManyTokens',
          `${tokensMax} streaming URLs are waiting to be used: use them, or wait until they expire (${tokenLifetimeMs / 1000} s).`,
        );
      }
      const token = randomBytes(tokenBytes).toString('base64url');
      grants.set(keyOf(token), { request, expiresAtMs: nowMs() + tokenLifetimeMs });
      return token;
    },
    redeem: ({ kind, token }) => {
      forgetExpired();
      const key = keyOf(token);
      const grant = grants.get(key);
      grants.delete(key);
      return grant?.request.kind === kind ? grant.request : null;
    },
    areWaiting: () => {
      forgetExpired();
      return grants.size > 0;
    },
  };
};
