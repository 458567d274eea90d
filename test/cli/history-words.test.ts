/** What `scribe history` says of single calls. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { detailOf } from '../../src/cli/history/words.ts';

test('a read of the journal says which records it was, or that there were none', () => {
  const read = { method: 'ReadJournal', subcommand: 'history', words: ['--since', '1h'], shown: 0 } as const;
  assert.equal(
    detailOf({ ...read, fromSeq: 5, toSeq: 9, shown: 3 }),
    'scribe history --since 1h: 3 shown of records 5 to 9',
  );
  assert.equal(
    detailOf({ ...read, fromSeq: 10, toSeq: 9 }),
    'scribe history --since 1h: 0 shown of no records: there was none from 10 on',
  );
  const { shown: _, ...follows } = read;
  assert.equal(detailOf({ ...follows, fromSeq: 10 }), 'scribe history --since 1h: all records from 10 on');
});

test('a reload says what the audit policy is, and what it was', () => {
  const options = { key: 'audit.seal.exec_options', applied: true, was: ['-p'], is: [] } as const;
  const socket = { key: 'serve.socket', applied: false } as const;
  assert.equal(
    detailOf({ method: 'ReloadConfig', changes: [options, socket], signal: 'SIGHUP' }),
    'by SIGHUP; audit.seal.exec_options is empty, was ["-p"]; serve.socket (takes a restart)',
  );
});
