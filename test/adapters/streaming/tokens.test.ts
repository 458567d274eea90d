/** The tokens in streaming URLs: used once, within their lifetime, and a bounded number of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createTokens, tokenLifetimeMs, tokensMax } from '../../../src/adapters/streaming/tokens.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { portForwardRequest } from './support.ts';

const request = portForwardRequest();
const named = (token: string) => ({ kind: request.kind, token });

const tokensAt = (startMs: number) => {
  let now = startMs;
  return {
    tokens: createTokens(() => now),
    advance: (ms: number) => {
      now += ms;
    },
  };
};

describe('streaming tokens', () => {
  it('give the request back once', () => {
    const { tokens } = tokensAt(1000);
    const token = tokens.issue(request);
    assert.equal(tokens.redeem(named(token)), request);
    assert.equal(tokens.redeem(named(token)), null);
    assert.equal(tokens.redeem(named('made-up')), null);
  });

  it('are for one kind of session, and used up by a try at another', () => {
    const { tokens } = tokensAt(0);
    const token = tokens.issue(request);
    assert.equal(tokens.redeem({ kind: 'Exec', token }), null);
    assert.equal(tokens.redeem(named(token)), null);
  });

  it('are long and never the same', () => {
    const { tokens } = tokensAt(0);
    const issued = new Set(Array.from({ length: tokensMax }, () => tokens.issue(request)));
    assert.equal(issued.size, tokensMax);
    for (const token of issued) assert.match(token, /^[A-Za-z0-9_-]{43}$/);
  });

  it('expire', () => {
    const { tokens, advance } = tokensAt(0);
    const late = tokens.issue(request);
    advance(tokenLifetimeMs - 1);
    const early = tokens.issue(request);
    advance(1);
    assert.equal(tokens.redeem(named(late)), null);
    assert.equal(tokens.redeem(named(early)), request);
  });

  it('are refused at the limit, until one is used or has expired', () => {
    const { tokens, advance } = tokensAt(0);
    const first = tokens.issue(request);
    for (let i = 1; i < tokensMax; i += 1) tokens.issue(request);
    const full = (error: unknown) => error instanceof FailureError && error.failure.reason === 'TooManyTokens';
    assert.throws(() => tokens.issue(request), full);
    tokens.redeem(named(first));
    tokens.issue(request);
    assert.throws(() => tokens.issue(request), full);
    advance(tokenLifetimeMs);
    tokens.issue(request);
  });
});
