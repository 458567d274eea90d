/** What of that which is told of the world is news: the rest leaves no record. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerStream } from '../../../src/domain/model/records.ts';
import { newsIn } from '../../../src/domain/turn/observations.ts';
import { type Happening, given } from '../given.ts';
import { CONTAINER, createdContainer, exitedContainer, runningContainer } from '../happenings.ts';

const told = { kind: 'TaskOomed', containerId: CONTAINER } as const;
const runsOutOfMemory: Happening = (tell) =>
  tell({ type: 'task.oomed', body: {}, stream: containerStream(CONTAINER), call: null });

test('a lack of memory is news once, of what runs', () => {
  assert.equal(newsIn(given(runningContainer).state, told)?.input.type, 'task.oomed');
  for (const before of [[], [createdContainer], [runningContainer, runsOutOfMemory], [exitedContainer]])
    assert.equal(newsIn(given(...before).state, told), null);
});
