/** Bounded waits: what ends them, with what, and that nothing of them is left behind. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, it } from 'node:test';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { orAfter, TIMER_MS_MAX, unlessAborted, within } from '../../../src/platform/rpc/timeout.ts';

const HOUR_MS = 3_600_000;
const never = new Promise<never>(() => undefined);
const late = (): FailureError => new FailureError('TimedOut', 'The disk did not answer within 1 ms.');

/** Timers that keep this process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
const listeners = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

describe('a wait with something to do without', () => {
  it('ends with the result, and leaves no timer', async () => {
    const before = timers();
    const waiting = orAfter(Promise.resolve('in time'), HOUR_MS, 'late');
    assert.equal(timers(), before + 1);
    assert.equal(await waiting, 'in time');
    assert.equal(timers(), before);
  });

  it('ends with what is given for it when the time is over', async () => {
    assert.equal(await orAfter(never, 1, 'late'), 'late');
    assert.equal(await orAfter(never, -5, 'late'), 'late');
  });

  it('fails as the work does, and leaves no timer', async () => {
    const before = timers();
    await assert.rejects(orAfter(Promise.reject(new Error('no')), HOUR_MS, 'late'), /^Error: no$/);
    assert.equal(timers(), before);
  });

  it('is longer than any timer holds without ending at once', async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    setTimeout(resolve, 20, 'in time');
    assert.equal(await orAfter(promise, TIMER_MS_MAX + 1, 'late'), 'in time');
  });
});

describe('a bounded wait', () => {
  it('fails with the error that names what was waited for', async () => {
    await assert.rejects(within(never, 1, late), late());
  });

  it('ends with the result, without an error made, and leaves no timer', async () => {
    const before = timers();
    const waiting = within(Promise.resolve(7), HOUR_MS, () => assert.fail('an error was made'));
    assert.equal(timers(), before + 1);
    assert.equal(await waiting, 7);
    assert.equal(timers(), before);
  });

  it('hears no more of work that fails too late', async () => {
    const work = Promise.withResolvers<never>();
    await assert.rejects(within(work.promise, 1, late), late());
    work.reject(new Error('nobody listens'));
    // An unhandled rejection would fail this test.
    await new Promise((resolve) => setImmediate(resolve));
  });

  it('ends with the reason of its signal, and leaves neither timer nor listener', async () => {
    const before = timers();
    const controller = new AbortController();
    const waiting = within(never, HOUR_MS, late, controller.signal);
    assert.equal(listeners(controller.signal), 1);
    controller.abort(new Error('the daemon ends'));
    await assert.rejects(waiting, /^Error: the daemon ends$/);
    assert.equal(timers(), before);
    assert.equal(listeners(controller.signal), 0);
    await assert.rejects(within(never, HOUR_MS, late, controller.signal), /^Error: the daemon ends$/);
    assert.equal(timers(), before);
  });
});

describe('a wait until a signal', () => {
  it('ends with the result, and leaves no listener', async () => {
    const { signal } = new AbortController();
    const waiting = unlessAborted(Promise.resolve(7), signal);
    assert.equal(listeners(signal), 1);
    assert.equal(await waiting, 7);
    assert.equal(listeners(signal), 0);
  });

  it('ends with the reason, whether it was there before or comes meanwhile', async () => {
    const controller = new AbortController();
    const waiting = unlessAborted(never, controller.signal);
    controller.abort(new Error('gone'));
    await assert.rejects(waiting, /^Error: gone$/);
    await assert.rejects(unlessAborted(never, controller.signal), /^Error: gone$/);
    assert.equal(listeners(controller.signal), 0);
  });
});
