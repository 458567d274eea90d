/** Tests of what asks a child a question in SQL: a child that cannot be started is the answer's failure, and nothing else's. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ask } from '../../src/cli/sql/ask.ts';

const signal = new AbortController().signal;

test('a child that cannot be started fails the question, and leaves nothing unhandled', async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown): void => void unhandled.push(error);
  process.on('unhandledRejection', note);
  const { execPath } = process;
  process.execPath = '/nowhere/node';
  try {
    const rows = ask({ journalPath: '/nowhere/journal.db', sql: 'SELECT 1', timeLimitMs: 10_000, signal });
    await assert.rejects(rows.next(), /ENOENT/);
  } finally {
    process.execPath = execPath;
    process.off('unhandledRejection', note);
  }
  assert.deepEqual(unhandled, []);
});
