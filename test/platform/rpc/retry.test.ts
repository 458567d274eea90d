/** Trying again: how long between, until when, and who may end it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { backoffMs, untilDone } from '../../../src/platform/rpc/retry.ts';

const HOUR_MS = 3_600_000;
const short = { firstMs: 1, lastMs: 2 };
const long = { firstMs: HOUR_MS, lastMs: HOUR_MS };
const { signal: never } = new AbortController();
const quiet = (): void => undefined;

/** Fails so many times, then gives how often it was called. */
const failing = (times: number): (() => Promise<number>) => {
  let calls = 0;
  return () => {
    calls += 1;
    return calls > times ? Promise.resolve(calls) : Promise.reject(new Error(`failure ${calls}`));
  };
};

describe('the wait between tries', () => {
  it('doubles from the first to the last', () => {
    const backoff = { firstMs: 100, lastMs: 5000 };
    const waits = [1, 2, 3, 4, 5, 6, 7, 8].map((failures) => backoffMs(backoff, failures));
    assert.deepEqual(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
  });

  it('is a number a timer can hold after however many failures', () => {
    assert.equal(backoffMs({ firstMs: 100, lastMs: 5000 }, 1_000_000), 5000);
    assert.equal(backoffMs({ firstMs: 0, lastMs: 5000 }, 1_000_000), 0);
  });
});

describe('trying until it succeeds', () => {
  it('gives the result of the first success, and tells each failure before it', async () => {
    const told: string[] = [];
    const onFailure = (error: unknown): void => void told.push(String(error));
    assert.equal(await untilDone(failing(3), { backoff: short, signal: never, onFailure }), 4);
    assert.deepEqual(told, ['Error: failure 1', 'Error: failure 2', 'Error: failure 3']);
  });

  it('waits for nothing before the first try, unless something failed before', async () => {
    assert.equal(await untilDone(failing(0), { backoff: long, signal: never, onFailure: quiet }), 1);
    const controller = new AbortController();
    const attempt = (): Promise<void> => assert.fail('it was tried');
    const tries = { backoff: long, failuresBefore: 1, signal: controller.signal, onFailure: quiet };
    const waiting = untilDone(attempt, tries);
    controller.abort(new Error('enough'));
    await assert.rejects(waiting, /^Error: enough$/);
  });

  it('ends at once, in the middle of a wait, with the reason of its signal', async () => {
    const controller = new AbortController();
    const tries = {
      backoff: long,
      signal: controller.signal,
      onFailure: () => void setImmediate(() => controller.abort(new Error('enough'))),
    };
    await assert.rejects(untilDone(failing(1), tries), /^Error: enough$/);
  });

  it('tries nothing once the signal is aborted', async () => {
    const attempt = (): Promise<void> => assert.fail('it was tried');
    const tries = { backoff: short, signal: AbortSignal.abort(new Error('enough')), onFailure: quiet };
    await assert.rejects(untilDone(attempt, tries), /^Error: enough$/);
  });

  it('gives up with what the caller makes of a failure', async () => {
    const onFailure = (error: unknown): void => {
      if (String(error) === 'Error: failure 2') throw error;
    };
    await assert.rejects(untilDone(failing(9), { backoff: short, signal: never, onFailure }), /^Error: failure 2$/);
  });

  it('does not keep a process alive while it waits', async () => {
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const controller = new AbortController();
    const waiting = untilDone(failing(1), { backoff: long, signal: controller.signal, onFailure: quiet });
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(timers(), before);
    controller.abort(new Error('enough'));
    await assert.rejects(waiting, /^Error: enough$/);
  });
});
