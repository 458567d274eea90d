/** Work done once for several, and work done a few at a time. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createSemaphore } from '../../../src/platform/linux/semaphore.ts';
import { createSharedWork } from '../../../src/adapters/images/shared-work.ts';

const asked = (key: string, way = 'any') => ({ key, way });
const never = new AbortController().signal;

describe('shared work', () => {
  it('is done once for all who ask meanwhile, and anew for later ones', async () => {
    const shared = createSharedWork<number>();
    let started = 0;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const start = async (): Promise<number> => {
      started += 1;
      const mine = started;
      await promise;
      return mine;
    };
    const all = [shared(asked('a'), never, start), shared(asked('a'), never, start), shared(asked('b'), never, start)];
    resolve(undefined);
    assert.deepEqual(await Promise.all(all), [1, 1, 2]);
    assert.equal(await shared(asked('a'), never, start), 3);
  });

  it('goes on while anybody waits for it, and ends with the last', async () => {
    const shared = createSharedWork<string>();
    const [first, second] = [new AbortController(), new AbortController()];
    const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
    const seen: string[] = [];
    const start = (signal: AbortSignal): Promise<string> =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          seen.push('aborted');
          void ended.then(() => {
            seen.push('ended');
            reject(new Error('aborted'));
          });
        });
      });
    const one = shared(asked('a'), first.signal, start).catch((error: Error) => seen.push(error.message));
    const two = shared(asked('a'), second.signal, start).catch((error: Error) => seen.push(error.message));
    first.abort(new Error('first left'));
    await one;
    assert.deepEqual(seen, ['first left']);
    second.abort(new Error('second left'));
    await new Promise(setImmediate);
    assert.deepEqual(seen, ['first left', 'aborted']);
    // Who comes now waits until the old work is gone, then begins anew.
    const three = shared(asked('a'), never, () => Promise.resolve(`new after ${seen.join()}`));
    end(undefined);
    await two;
    assert.deepEqual(seen, ['first left', 'aborted', 'ended', 'second left']);
    assert.match(await three, /^new after first left,aborted,ended/);
  });

  it('fails for those alone whose own way failed: the others go theirs, one after the other', async () => {
    const shared = createSharedWork<string>();
    const started: string[] = [];
    const way = (name: string, isGood: boolean) => async (): Promise<string> => {
      started.push(name);
      await new Promise(setImmediate);
      if (!isGood) throw new Error(`${name} failed`);
      return name;
    };
    const ways = [way('first', false), way('second', false), way('third', true), way('fourth', true)];
    const outcomes = await Promise.allSettled(
      ways.map((start, index) => shared(asked('a', `way ${index}`), never, start)),
    );
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason))),
      ['Error: first failed', 'Error: second failed', 'third', 'third'],
    );
    assert.deepEqual(started, ['first', 'second', 'third']);
    await assert.rejects(shared(asked('a'), AbortSignal.abort(new Error('late')), way('late', true)), /late/);
  });

  it('fails for all who go the same way, without being done again', async () => {
    const shared = createSharedWork<string>();
    let started = 0;
    const fail = async (): Promise<string> => {
      started += 1;
      await new Promise(setImmediate);
      throw new Error('this way fails');
    };
    const other = shared(asked('a', 'one'), never, fail);
    const all = [other, shared(asked('a', 'one'), never, fail), shared(asked('a', 'two'), never, fail)];
    const outcomes = await Promise.allSettled([...all, shared(asked('a', 'two'), never, fail)]);
    assert.ok(outcomes.every(({ status }) => status === 'rejected'));
    assert.equal(started, 2);
  });

  it('is not begun anew for who gave up while it failed', async () => {
    const shared = createSharedWork<string>();
    const { promise, reject } = Promise.withResolvers<string>();
    const leaving = new AbortController();
    const first = shared(asked('a'), never, () => promise);
    const second = shared(asked('a', 'other'), leaving.signal, () => Promise.resolve('second'));
    leaving.abort(new Error('gave up'));
    reject(new Error('first failed'));
    await assert.rejects(first, /first failed/);
    await assert.rejects(second, /gave up/);
  });
});

describe('semaphore', () => {
  it('lets in so many at a time, in their order, and forgets who gives up', async () => {
    const turn = createSemaphore(2);
    let inside = 0;
    let most = 0;
    const order: number[] = [];
    const work = (id: number) => async (): Promise<void> => {
      inside += 1;
      most = Math.max(most, inside);
      order.push(id);
      await new Promise(setImmediate);
      inside -= 1;
    };
    const quitter = new AbortController();
    const all = [0, 1, 2, 3].map((id) => turn(never, work(id)));
    const quitting = turn(quitter.signal, work(99));
    const last = turn(never, work(4));
    quitter.abort(new Error('enough'));
    await assert.rejects(quitting, /enough/);
    await Promise.all([...all, last]);
    assert.deepEqual([most, order], [2, [0, 1, 2, 3, 4]]);
    await assert.rejects(
      turn(never, () => Promise.reject(new Error('x'))),
      /x/,
    );
    await turn(never, work(5));
  });
});
