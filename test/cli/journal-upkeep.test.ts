/** `scribe journal info`, `backup` and `compact`, beside whoever writes the journal and without. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createUsageCounter, daysUntil, growthPerDay } from '../../src/cli/journal/usage.ts';
import { backUpJournal } from '../../src/journal/backup.ts';
import { openJournal, openReader } from '../../src/journal/open.ts';
import type { SizedRecord } from '../../src/journal/sizes.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { closeReads, openTemporary, pruneSeqs, readRowAt, recordsFrom } from '../journal/support.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonLines, rootWith, scribe } from './support.ts';

const owner = cleanupAfterAll();

const DAY_MS = 86_400_000;

const sized = (part: Partial<SizedRecord>): SizedRecord => ({
  ...{ seq: 1, atMs: 0, type: 'type.1', stream: 'node', call: null, bodyBytes: 100, bodyStart: '{}' },
  ...part,
});

/** Without giving the loop away: whoever copies goes on only after that. */
const waitForHead = (path: string, seq: number): void => {
  const reader = openReader(path);
  try {
    for (const endMs = performance.now() + 10_000; reader.head().seq < seq; )
      assert.ok(performance.now() < endMs, 'the commit waits for the copy');
  } finally {
    reader.close();
  }
};

describe('what records are kept as', () => {
  test('commands, what is there, and the rest; a call goes with what it touched', () => {
    const counter = createUsageCounter((stream) => stream === 'container/here' || stream === 'node', 0);
    const exec = { bodyStart: '{"request":{"method":"ExecSync","containerId"' };
    counter.add(sized({ seq: 1, type: 'call.received', stream: 'call/a', call: 1, ...exec }));
    counter.add(sized({ seq: 2, type: 'effect.ended', stream: 'container/here', call: 1 }));
    counter.add(sized({ seq: 3, type: 'call.received', stream: 'call/b', call: 3 }));
    counter.add(sized({ seq: 4, stream: 'container/here', call: 3 }));
    counter.add(sized({ seq: 5, type: 'call.received', stream: 'call/c', call: 5 }));
    counter.add(sized({ seq: 6, stream: 'container/gone', call: 5, atMs: 7 }));
    const { classes, types, all, newestAtMs } = counter.counted();
    assert.deepEqual(
      [...classes].map(([name, { records }]) => [name, records]),
      [
        ['commands', 2],
        ['removed', 2],
        ['present', 2],
      ],
    );
    assert.equal(types.get('call.received')?.records, 3);
    assert.deepEqual(all, { records: 6, bodyBytes: 600, oldestAtMs: 0 });
    assert.equal(newestAtMs, 7);
  });

  test('growth is told from what is recent, and from enough of it', () => {
    const counter = createUsageCounter(() => true, 100);
    for (const atMs of [0, 100, 100 + DAY_MS / 2]) counter.add(sized({ atMs }));
    assert.equal(growthPerDay(counter.counted(), 50), 600);
    assert.equal(daysUntil(6000, 600), 10);
    assert.equal(daysUntil(-1, 600), 0);
    assert.equal(daysUntil(6000, null), null);
    const short = createUsageCounter(() => true, 0);
    for (const atMs of [0, 1000]) short.add(sized({ atMs }));
    assert.equal(growthPerDay(short.counted(), 50), null);
  });
});

describe('journal info', () => {
  test('counts what is there, what is pruned and what is free', async () => {
    const { dir } = await rootWith(owner, recordsFrom(1, 3000), async (journal) => {
      for (let n = 0; n < 10; n++) journal.appendRead(readRowAt(n));
      await closeReads(journal);
      await pruneSeqs(
        journal,
        Array.from({ length: 2000 }, (_, index) => index + 1),
      );
    });
    const { stdout, exitStatus, stderr } = await scribe(['journal', 'info', '--root', dir, '--json']);
    assert.equal(exitStatus, 0, stderr);
    interface Shown {
      readonly sizes: Readonly<Record<string, number>>;
      readonly types: readonly { readonly records: number }[];
      readonly classes: readonly { readonly class: string; readonly records: number }[];
      readonly sizeBytesMax: number;
      readonly diskFreeBytes: number;
    }
    const [info] = jsonLines<Shown>(stdout);
    assert.ok(info);
    assert.equal(info.sizes['records'], 3002);
    assert.equal(info.sizes['prunedRecords'], 2000);
    assert.equal(info.sizes['readCalls'], 10);
    assert.ok((info.sizes['freeBytes'] ?? 0) > 0);
    assert.equal(
      info.types.reduce((sum, { records }) => sum + records, 0),
      1002,
    );
    assert.equal(info.classes.find((row) => row.class === 'reads')?.records, 10);
    assert.equal(info.sizeBytesMax, 2 * 1024 ** 3);
    assert.ok(info.diskFreeBytes > 0);
    const text = await scribe(['journal', 'info', '--root', dir, '--utc']);
    assert.match(text.stdout, /^records {6}3,002, 2,000 of them pruned$/m);
    assert.match(text.stdout, /^oldest kept {2}2025-10-09 /m);
    assert.match(text.stdout, /^size_max .* reached never at this pace|^grows by .* unknown/m);
  });
});

describe('journal backup', () => {
  test('is of one moment, verifies, and holds up no commit, while the journal is being written', async () => {
    const [path, dir] = [join(await tempDir(owner), 'journal.db'), await tempDir(owner)];
    const { journal } = await openTemporary(owner, { path });
    await journal.append(recordsFrom(1, 20_000));
    let steps = 0;
    const written: Promise<void>[] = [];
    await backUpJournal(path, join(dir, 'journal.db'), () => {
      steps += 1;
      if (steps === 1) written.push(journal.append(recordsFrom(20_001, 1000)));
      // On the disk, and the copy is still being made: the writer is another thread.
      if (steps === 2) waitForHead(path, 21_000);
    });
    assert.ok(steps > 2);
    await Promise.all(written);
    const copy = openReader(join(dir, 'journal.db'));
    assert.equal(copy.head().seq, 20_000);
    copy.close();
    const report = await verifyJournal(join(dir, 'journal.db'), { key: `${path}.key` });
    assert.deepEqual(report.findings, []);
    assert.equal(journal.head().seq, 21_000);
  });

  test('leaves the key where it is unless told, and is for its owner alone', async () => {
    const { dir } = await rootWith(owner, recordsFrom(1, 1500));
    const to = join(await tempDir(owner), 'copies', 'tonight');
    const { stdout, exitStatus, stderr } = await scribe(['journal', 'backup', '--root', dir, to]);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, /journal\.db: 1,500 records, every hash is right\n$/);
    assert.equal(existsSync(join(to, 'journal.db.key')), false);
    for (const name of readdirSync(to)) assert.equal(statSync(join(to, name)).mode & 0o077, 0, name);
    const verified = await scribe(['verify', '--root', to, '--key', join(to, 'journal.vkey')]);
    assert.equal(verified.exitStatus, 0, verified.stderr);

    const again = await scribe(['journal', 'backup', '--root', dir, to]);
    assert.equal(again.exitStatus, 1);
    assert.match(again.stderr, /There is a journal at .* already; name another directory/);

    const whole = join(to, 'whole');
    assert.equal((await scribe(['journal', 'backup', '--with-key', '--root', dir, whole])).exitStatus, 0);
    const { journal } = openJournal({ path: join(whole, 'journal.db') });
    await journal.append(recordsFrom(1501, 1));
    await journal.close();
    assert.equal((await scribe(['verify', '--root', whole])).exitStatus, 0);
  });
});

describe('journal compact', () => {
  test('gives free pages back, changes no hash, and is refused while somebody may write', async () => {
    const { dir, journalPath } = await rootWith(owner, recordsFrom(1, 20_000), async (journal) => {
      await pruneSeqs(
        journal,
        Array.from({ length: 15_000 }, (_, index) => index + 1),
      );
    });
    const { journal } = openJournal({ path: journalPath });
    const refused = await scribe(['journal', 'compact', '--root', dir]);
    assert.equal(refused.exitStatus, 1);
    assert.match(refused.stderr, /To do it all the same stop the daemon/);
    const { hash } = journal.head();
    await journal.close();

    const before = statSync(journalPath).size;
    const done = await scribe(['journal', 'compact', '--root', dir]);
    assert.equal(done.exitStatus, 0, done.stderr);
    assert.ok(statSync(journalPath).size < before / 2, done.stdout);
    const reader = openReader(journalPath);
    assert.deepEqual(Buffer.from(reader.head().hash), Buffer.from(hash));
    reader.close();
    assert.equal((await scribe(['verify', '--root', dir])).exitStatus, 0);
  });
});
