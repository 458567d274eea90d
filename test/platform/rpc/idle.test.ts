/** Idleness is noticed once, after as much time as there is without a touch. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { watchIdle } from '../../../src/platform/rpc/idle.ts';

/** Timers that keep this process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('a watch for idleness', () => {
  it('tells, and a touch puts it off: one that was begun later is told before it', async () => {
    const told: string[] = [];
    const { promise: both, resolve } = Promise.withResolvers<void>();
    const tell = (name: string): void => {
      if (told.push(name) === 2) resolve();
    };
    const first = watchIdle(20, () => tell('touched'));
    watchIdle(20, () => tell('not touched'));
    first.touch();
    await both;
    assert.deepEqual(told, ['not touched', 'touched']);
  });

  it('tells nothing once it is stopped, and leaves no timer', () => {
    const before = timers();
    const idle = watchIdle(3_600_000, () => assert.fail('it was told'));
    assert.equal(timers(), before + 1);
    idle.stop();
    assert.equal(timers(), before);
  });
});
