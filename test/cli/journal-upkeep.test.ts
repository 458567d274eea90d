/** `scribe journal info`, `backup` and `compact`, beside whoever writes the journal and without. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readGolden } from '../../src/cli/replay/golden-text.ts';
import { isClosedStream } from '../../src/domain/turn/closed-streams.ts';
import { overWith, type PluginLives } from '../../src/domain/turn/plugin-lives.ts';
import { nodeFold } from '../../src/engine/node-fold.ts';
import { foldState } from '../../src/journal/fold.ts';
import { SOCKET_NAME } from '../../src/config/names.ts';
import { type Counted, createUsageCounter, daysUntil, growthPerDay } from '../../src/cli/journal/usage.ts';
import { backUpJournal } from '../../src/journal/backup.ts';
import { connectWriter } from '../../src/journal/connect.ts';
import { openJournal, openReader } from '../../src/journal/open.ts';
import { measureJournal, type SizedRecord } from '../../src/journal/sizes.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { closeReads, openTemporary, pruneSeqs, readRowAt, recordsFrom } from '../journal/support.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { run } from '../support/process.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';
import { fakeDaemon } from './fake-daemon.ts';
import { fails, jsonLines, type Root, rootWith, scribe } from './support.ts';

const owner = cleanupAfterAll();

const program = join(import.meta.dirname, '../../src/cli/main.ts');
const DAY_MS = 86_400_000;

const sized = (part: Partial<SizedRecord>): SizedRecord => ({
  ...{ seq: 1, atMs: 0, type: 'type.1', stream: 'node', cause: null, call: null, bodyBytes: 100, bodyStart: '{}' },
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

const isHere = (stream: string): boolean => stream === 'container/here' || stream === 'node';

const countsOf = (classes: Counted['classes']): Readonly<Record<string, number>> =>
  Object.fromEntries([...classes].map(([name, { records }]) => [name, records]));

describe('what records are kept as', () => {
  test('commands, what is there, and the rest; a call goes with what it touched', () => {
    const counter = createUsageCounter(isHere, 0, (one) => one === 'commands');
    const exec = { bodyStart: '{"request":{"method":"ExecSync","containerId"' };
    counter.add(sized({ seq: 1, type: 'call.received', stream: 'call/a', call: 1, ...exec }));
    counter.add(sized({ seq: 2, type: 'effect.ended', stream: 'container/here', call: 1 }));
    counter.add(sized({ seq: 3, type: 'call.received', stream: 'call/b', call: 3 }));
    counter.add(sized({ seq: 4, stream: 'container/here', call: 3 }));
    counter.add(sized({ seq: 5, type: 'call.received', stream: 'call/c', call: 5 }));
    counter.add(sized({ seq: 6, stream: 'container/gone', call: 5, atMs: 7 }));
    const { classes, types, all, newestAtMs } = counter.counted();
    const { reads, commands, removed, present } = countsOf(classes);
    assert.deepEqual([reads, commands, removed, present], [0, 2, 2, 2]);
    assert.equal(types.get('call.received')?.records, 3);
    assert.deepEqual(all, { records: 6, bodyBytes: 600, oldestAtMs: 0 });
    assert.equal(newestAtMs, 7);
  });

  test('sessions, refused calls and reads that are recorded whole, where they have times of their own', () => {
    const counted = (hasOwnTime: boolean) => {
      const counter = createUsageCounter(isHere, 0, (one) => hasOwnTime || one === 'commands');
      const call = (seq: number, method: string, completed: string): void => {
        const bodyStart = `{"request":{"method":"${method}","containerId"`;
        counter.add(sized({ seq, type: 'call.received', stream: `call/${seq}`, call: seq, bodyStart }));
        const ended = { type: 'call.completed', stream: `call/${seq}`, call: seq, bodyStart: completed };
        counter.add(sized({ seq: seq + 1, ...ended }));
      };
      call(1, 'ExecSession', '{"code":0');
      call(3, 'Read', '{"code":0');
      call(5, 'StopContainer', '{"code":5,"failure":{"reason"');
      call(7, 'StartContainer', '{"code":2,"failure":{"reason"');
      counter.add(sized({ seq: 9, stream: 'container/here', call: 7 }));
      return countsOf(counter.counted().classes);
    };
    assert.deepEqual(counted(true), { reads: 2, commands: 0, sessions: 2, refused: 2, removed: 0, present: 3 });
    assert.deepEqual(counted(false), { reads: 0, commands: 0, sessions: 0, refused: 0, removed: 6, present: 3 });
  });

  test('growth is told from what is recent, and from enough of it', () => {
    const counter = createUsageCounter(
      () => true,
      100,
      () => true,
    );
    for (const atMs of [0, 100, 100 + DAY_MS / 2]) counter.add(sized({ atMs }));
    assert.equal(growthPerDay(counter.counted(), 50), 600);
    assert.equal(daysUntil(6000, 600), 10);
    assert.equal(daysUntil(-1, 600), 0);
    assert.equal(daysUntil(6000, null), null);
    const short = createUsageCounter(
      () => true,
      0,
      () => true,
    );
    for (const atMs of [0, 1000]) short.add(sized({ atMs }));
    assert.equal(growthPerDay(short.counted(), 50), null);
  });
});

describe('journal info', () => {
  test('connections of NRI plugins that are over are kept as long as removed pods, those that are there as they are', async () => {
    const golden = join(import.meta.dirname, '../golden/v1/nri-plugins.jsonl');
    const records = readGolden(await readFile(golden, 'utf8'));
    const lives: PluginLives = new Map();
    const over = new Set(records.flatMap((record) => overWith(lives, record)));
    assert.ok(over.size >= 8);
    const { dir } = await rootWith(owner, records);
    const { stdout } = await scribe(['journal', 'info', '--root', dir, '--json']);
    interface Shown {
      readonly classes: readonly { readonly class: string; readonly records: number }[];
    }
    const [info] = jsonLines<Shown>(stdout);
    const countOf = (name: string): number => info?.classes.find((one) => one.class === name)?.records ?? 0;
    // As if nothing on the node's stream were ever over.
    const path = join(dir, 'journal.db');
    const { state } = foldState(path, nodeFold);
    const counter = createUsageCounter(
      (stream) => !isClosedStream(state, stream),
      0,
      () => true,
    );
    measureJournal(path, [], counter.add);
    const present = countsOf(counter.counted().classes)['present'] ?? 0;
    assert.equal(countOf('present'), present - over.size);
    assert.equal(
      info?.classes.reduce((sum, { records: count }) => sum + count, 0),
      records.length,
    );
  });

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

  test('leaves nothing where there is no room for it, nor where there can be no directory', async () => {
    const { dir } = await rootWith(owner, recordsFrom(1, 8000));
    const to = await tempDir(owner);
    await mountSmallDisk(owner, to, 1);
    const { exitStatus, stderr } = await scribe(['journal', 'backup', '--root', dir, to]);
    assert.equal(exitStatus, 1);
    assert.match(
      stderr,
      /A copy of .* takes \d+\.\d MiB, and the file system of .* has 1\.0 MiB free: make room first\.\n$/,
    );
    assert.deepEqual(readdirSync(to), []);
    const inner = await scribe(['journal', 'backup', '--root', dir, join(to, 'node7', 'tonight')]);
    assert.equal(inner.exitStatus, 1);
    assert.deepEqual(readdirSync(to), []);
    const file = join(dir, 'journal.db');
    const taken = await scribe(['journal', 'backup', '--root', dir, file]);
    assert.equal(taken.exitStatus, 1);
    assert.match(taken.stderr, /^scribe: The directory .*journal\.db cannot be made: EEXIST/);
  });

  test('leaves the key where it is unless told, and is for its owner alone', async () => {
    const { dir } = await rootWith(owner, recordsFrom(1, 1500));
    const to = join(await tempDir(owner), 'copies', 'tonight');
    const { stdout, exitStatus, stderr } = await scribe(['journal', 'backup', '--root', dir, to]);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, /journal\.db: 1,500 records, every hash is right\n$/);
    assert.equal(existsSync(join(to, 'journal.db.key')), false);
    assert.equal(statSync(join(to, 'journal.db-wal')).size, 0);
    assert.deepEqual(readdirSync(to).toSorted(), [
      'journal.db',
      'journal.db-wal',
      'journal.db.checkpoint',
      'journal.db.head',
      'journal.vkey',
    ]);
    for (const name of readdirSync(to)) assert.equal(statSync(join(to, name)).mode & 0o077, 0, name);
    const verified = await scribe(['verify', '--root', to, '--key', join(to, 'journal.vkey')]);
    assert.equal(verified.exitStatus, 0, verified.stderr);

    const again = await scribe(['journal', 'backup', '--root', dir, to]);
    assert.equal(again.exitStatus, 1);
    assert.match(again.stderr, /There is a journal at .* already; name another directory/);

    // Where the key is not there, as in this copy, no other could be verified: nothing is left of one.
    const copied = join(to, 'copied');
    const keyless = await scribe(['journal', 'backup', '--root', to, copied]);
    assert.equal(keyless.exitStatus, 1);
    assert.match(keyless.stderr, /journal\.db\.key is missing or no key, or you may not read it\.\n$/);
    assert.equal(existsSync(copied), false);
    await copyFile(join(to, 'journal.vkey'), join(to, 'journal.db.key'));
    const signless = await scribe(['journal', 'backup', '--with-key', '--root', to, copied]);
    assert.match(signless.stderr, /^scribe: --with-key: .*journal\.db\.key is no key that signs\.\n$/);
    assert.deepEqual([signless.exitStatus, existsSync(copied)], [1, false]);

    const whole = join(to, 'whole');
    assert.equal((await scribe(['journal', 'backup', '--with-key', '--root', dir, whole])).exitStatus, 0);
    const { journal } = openJournal({ path: join(whole, 'journal.db') });
    await journal.append(recordsFrom(1501, 1));
    await journal.close();
    assert.equal((await scribe(['verify', '--root', whole])).exitStatus, 0);
  });
});

describe('journal compact', () => {
  /** Three quarters of it are pruned. */
  const roomy = () =>
    rootWith(owner, recordsFrom(1, 20_000), async (journal) => {
      await pruneSeqs(
        journal,
        Array.from({ length: 15_000 }, (_, index) => index + 1),
      );
    });

  /** A daemon as far as this command knows one: its journal is real. */
  const daemonOn = async (t: Owner, { dir, journalPath }: Root) => {
    const { journal } = openJournal({ path: journalPath });
    const { socketPath } = await fakeDaemon(t, {
      compactJournal: async () => {
        const { fileBytes, freeBytes, givesBack } = await journal.giveBack(200);
        return { fileBytes: String(fileBytes), freeBytes: String(freeBytes), possible: givesBack, rootDir: dir };
      },
    });
    return { journal, socketPath };
  };

  const headOf = (journalPath: string): Buffer => {
    const reader = openReader(journalPath);
    try {
      return Buffer.from(reader.head().hash);
    } finally {
      reader.close();
    }
  };

  test('stopped: gives free pages back and changes no hash', async () => {
    const { dir, journalPath } = await roomy();
    const [before, hash] = [statSync(journalPath).size, headOf(journalPath)];
    const done = await scribe(['journal', 'compact', '--root', dir]);
    assert.equal(done.exitStatus, 0, done.stderr);
    assert.match(done.stdout, /every hash is right\n$/);
    assert.ok(statSync(journalPath).size < before / 2, done.stdout);
    assert.deepEqual(headOf(journalPath), hash);
  });

  test('stopped: takes no room but beside the journal, where it has looked for it', async () => {
    const { dir, journalPath } = await rootWith(owner, recordsFrom(1, 30_000));
    assert.ok(statSync(journalPath).size > 4 * 1024 * 1024, 'SQLite holds so little in memory');
    const small = await tempDir(owner);
    await mountSmallDisk(owner, small, 1);
    const words = [process.execPath, program, 'journal', 'compact', '--root', dir];
    const { exitCode, stderr } = await run(['env', `TMPDIR=${small}`, ...words]);
    assert.equal(exitCode, 0, stderr);
  });

  test('beside the daemon: gives free pages back while it commits and others read, and changes no hash', async (t) => {
    const root = await roomy();
    const { dir, journalPath } = root;
    const before = statSync(journalPath).size;
    const { journal, socketPath } = await daemonOn(t, root);
    const life = { isOver: false };
    const firstSeq = journal.head().seq + 1;
    let seq = firstSeq;
    const committing = (async () => {
      for (; !life.isOver; seq += 1) {
        await journal.append(recordsFrom(seq, 1));
        await sleep(1);
      }
    })();
    const done = await scribe(['journal', 'compact', '--root', dir, '--socket', socketPath]);
    life.isOver = true;
    await committing;
    assert.equal(done.exitStatus, 0, done.stderr);
    assert.match(done.stdout, /every hash is right\n$/);
    assert.ok(seq > firstSeq + 10, `${seq - firstSeq} commits`);
    await journal.close();
    // It grew by what was committed.
    assert.ok(statSync(journalPath).size < before * 0.75, done.stdout);
    assert.equal((await scribe(['verify', '--root', dir])).exitStatus, 0);
  });

  test('beside the daemon: the root may be named by a link, and the socket not at all', async (t) => {
    const root = await roomy();
    const { journal, socketPath } = await daemonOn(t, root);
    const link = join(await tempDir(t), 'link');
    symlinkSync(root.dir, link);
    const compacted = (...words: readonly string[]) => scribe(['journal', 'compact', ...words]);
    assert.equal((await compacted('--root', link, '--socket', socketPath)).exitStatus, 0);
    // A state directory that the journal names is where the daemon listens unless somebody says otherwise.
    symlinkSync(socketPath, join(dirname(socketPath), SOCKET_NAME));
    const body = JSON.stringify({ facts: { stateDir: dirname(socketPath) } });
    const started = recordsFrom(journal.head().seq + 1, 1).map((record) => ({
      ...record,
      type: 'daemon.started',
      stream: 'node',
      body,
    }));
    await journal.append(started);
    assert.equal((await compacted('--root', root.dir)).exitStatus, 0);
    await journal.close();
  });

  test('a journal that is a link is refused: its lock would keep nobody from what it leads to', async (t) => {
    const { journalPath } = await roomy();
    const dir = await tempDir(t);
    symlinkSync(journalPath, join(dir, 'journal.db'));
    assert.throws(() => openJournal({ path: join(dir, 'journal.db') }), /is a symbolic link: .* mount that there/);
    await fails(['journal', 'compact', '--root', dir], 1, /^scribe: The journal .* is a symbolic link/);
    assert.deepEqual(readdirSync(dir), ['journal.db']);
  });

  test('beside the daemon: refused for the journal of another daemon, and for a file that cannot, until it was compacted stopped', async (t) => {
    const root = await roomy();
    const { dir, journalPath } = root;
    // As older versions made it.
    const db = connectWriter(journalPath);
    db.pragma('auto_vacuum = NONE');
    db.exec('VACUUM');
    db.close();
    const first = await daemonOn(t, root);
    const compact = ['journal', 'compact', '--root', dir, '--socket', first.socketPath];
    const refused = await scribe(compact);
    assert.equal(refused.exitStatus, 1);
    assert.match(refused.stderr, /Compact it once with the daemon stopped/);
    await first.journal.close();

    assert.equal((await scribe(compact)).exitStatus, 0);
    const { journal } = openJournal({ path: journalPath });
    const { givesBack } = await journal.giveBack(0);
    assert.equal(givesBack, true);
    const { socketPath } = await fakeDaemon(t, { compactJournal: async () => ({ possible: true, rootDir: '/other' }) });
    const other = await scribe(['journal', 'compact', '--root', dir, '--socket', socketPath]);
    assert.equal(other.exitStatus, 1);
    assert.match(other.stderr, /writes the journal of \/other, not /);
    await journal.close();
  });
});
