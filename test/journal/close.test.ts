/** Closing a journal in order, also when its owner is so busy that the writer's answer and its end are heard at once. */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test, type TestContext } from 'node:test';
import { Worker } from 'node:worker_threads';
import { openTemporary, recordAt } from './support.ts';

const isAnswer = (message: unknown): boolean =>
  typeof message === 'object' && message !== null && 'kind' in message && message.kind === 'answer';

/**
 * What Node does when a thread has ended before its last message was read: it is read then, its listeners are taken off,
 * and the end is told in the same breath, before anybody who waits for the message can go on.
 */
const tellAnswersWithTheEnd = (t: TestContext): void => {
  const held: unknown[] = [];
  t.mock.method(Worker.prototype, 'emit', function (this: Worker, event: string, ...args: unknown[]): boolean {
    const [first, listener] = args;
    if (event === 'message' && isAnswer(first)) return held.push(first) > 0;
    if (event === 'removeListener' && first === 'message' && typeof listener === 'function')
      for (const message of held.splice(0)) Reflect.apply(listener, this, [message]);
    return EventEmitter.prototype.emit.call(this, event, ...args);
  });
};

test('C7: a writer that ends because it was closed is no failure, however late its answer is heard', async (t) => {
  const { journal } = await openTemporary(t);
  const failures: Error[] = [];
  void journal.failed.then((error) => failures.push(error));
  await journal.append([recordAt(1)]);
  tellAnswersWithTheEnd(t);
  await journal.close();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(failures, []);
  await assert.rejects(journal.append([recordAt(2)]), { code: 'Closed' });
});
