/** Replies that are waited for: each entry ends once, and leaves neither an entry nor a timer. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { createPendingReplies } from '../../../src/platform/rpc/pending.ts';

const HOUR_MS = 3_600_000;
const late = (): FailureError => new FailureError('TimedOut', 'The keeper did not answer list within 1 ms.');
const gone = new Error('the connection has gone');

/** Timers that keep this process alive. */
const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('replies that are waited for', () => {
  it('find their requests in any order', async () => {
    const pending = createPendingReplies<string>();
    const [first, second, third] = [pending.wait(1), pending.wait(2), pending.wait(3)];
    pending.resolve(2, 'b');
    pending.reject(3, new Error('c'));
    pending.resolve(1, 'a');
    assert.deepEqual(await Promise.all([first, second]), ['a', 'b']);
    await assert.rejects(third, /^Error: c$/);
    assert.equal(pending.size(), 0);
  });

  it("are nobody's when they come a second time, or for what nobody asked", async () => {
    const pending = createPendingReplies<string>();
    const reply = pending.wait(1);
    pending.resolve(1, 'first');
    pending.resolve(1, 'second');
    pending.reject(1, gone);
    pending.resolve(9, 'of no request');
    assert.equal(await reply, 'first');
    assert.equal(pending.size(), 0);
  });

  it("are nobody's when they come too late: the request has failed with the error that names it", async () => {
    const pending = createPendingReplies<string>();
    const reply = pending.wait(1, { bound: { timeoutMs: 1, late } });
    await assert.rejects(reply, late());
    assert.equal(pending.has(1), false);
    pending.resolve(1, 'late');
    await assert.rejects(reply, late());
  });

  it('leave no timer behind, however they end', async () => {
    const before = timers();
    const pending = createPendingReplies<string>();
    const bound = { timeoutMs: HOUR_MS, late };
    const replies = [1, 2, 3, 4].map((id) => pending.wait(id, { bound }));
    assert.equal(timers(), before + 4);
    pending.resolve(1, 'a');
    pending.reject(2, gone);
    assert.equal(timers(), before + 2);
    pending.failAll(gone);
    assert.equal(timers(), before);
    const last = pending.wait(5, { bound });
    pending.close(gone);
    assert.equal(timers(), before);
    const ends = await Promise.allSettled([...replies, last]);
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['fulfilled', 'rejected', 'rejected', 'rejected', 'rejected'],
    );
  });

  it('fail together, and later requests are answered still', async () => {
    const pending = createPendingReplies<string>();
    const replies = [pending.wait(1), pending.wait(2)];
    pending.failAll(gone);
    for (const reply of replies) await assert.rejects(reply, gone);
    const later = pending.wait(3);
    pending.resolve(3, 'of the next thread');
    assert.equal(await later, 'of the next thread');
  });

  it('fail together on close, and so does whoever asks later, with what was said first', async () => {
    const pending = createPendingReplies<string>();
    const reply = pending.wait(1);
    pending.close(gone);
    pending.close(new Error('closed again'));
    await assert.rejects(reply, gone);
    await assert.rejects(pending.wait(2, { bound: { timeoutMs: HOUR_MS, late } }), gone);
    assert.equal(pending.size(), 0);
  });

  it('have a note, as long as they are waited for', async () => {
    const pending = createPendingReplies<string, { processGroup: number }>();
    const replies = [pending.wait(1, { note: { processGroup: 11 } }), pending.wait(2, { note: { processGroup: 12 } })];
    const note = pending.noteOf(2);
    assert.equal(note?.processGroup, 12);
    pending.resolve(1, 'done');
    assert.deepEqual(pending.notes(), [{ processGroup: 12 }]);
    assert.equal(pending.noteOf(1), undefined);
    pending.resolve(2, 'done');
    await Promise.all(replies);
    assert.deepEqual(pending.notes(), []);
  });
});
