/** `scribe history --follow` in a process of its own, while this one writes the journal. */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { copyFile, rename, truncate, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { SOCKET_NAME } from '../../src/config/names.ts';
import { backUpJournal } from '../../src/journal/backup.ts';
import { connectWriter } from '../../src/journal/connect.ts';
import { openJournal } from '../../src/journal/open.ts';
import { openTree } from '../../src/journal/open-tree.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { exitOf, runContainer } from '../engine/rig.ts';
import { onCleanup } from '../support/cleanup.ts';
import { type BackgroundProcess, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { recordsOf, rootWith, scribe, startNode } from './support.ts';

const program = join(import.meta.dirname, '../../bin/scribe');
const startNs = 1_800_000_000_000_000_000n;

interface Followed {
  readonly journal: SqliteJournal;
  readonly path: string;
  readonly follower: BackgroundProcess;
}

/** A journal with these records, open for writing, and somebody who follows it. */
const follow = async (t: TestContext, records: readonly JournalRecord[], ...words: string[]): Promise<Followed> => {
  const dir = await tempDir(t);
  const path = join(dir, 'journal.db');
  const { journal } = openJournal({ path });
  onCleanup(t, () => journal.close());
  await journal.append(records);
  const follower = await startProcess(t, [program, 'history', '--root', dir, '--follow', ...words]);
  return { journal, path, follower };
};

const story = async (): Promise<{ before: JournalRecord[]; after: JournalRecord[] }> => {
  const node = await startNode();
  const before = recordsOf(node);
  const { podSandboxId, containerId } = await runContainer(node);
  await node.engine.observe(exitOf(podSandboxId, containerId, 7));
  await node.settle();
  return { before, after: recordsOf(node).slice(before.length) };
};

const restart = (seq: number): JournalRecord => ({
  ...{ seq, atNs: startNs + BigInt(seq), monoNs: BigInt(seq), boot: 'boot', type: 'daemon.stopped', v: 1 },
  ...{ stream: 'node', cause: null, call: null, body: JSON.stringify({ reason: `number ${seq}.` }) },
});

test('shows what was there, then what is being written: a call when it has ended', async (t) => {
  const { before, after } = await story();
  const { journal, follower } = await follow(t, before);
  await follower.until(/network configured .*sim/);
  const received = after.findIndex(({ type, body }) => type === 'call.received' && body.includes('RunPodSandbox'));
  const completed = after.findIndex(({ type, body }) => type === 'call.completed' && body.includes('RunPodSandbox'));
  await journal.append(after.slice(0, received + 1));
  await follower.until(/PullImage +registry\.test\/app:1/);
  assert.doesNotMatch(follower.output(), /RunPodSandbox/);
  await journal.append(after.slice(received + 1, completed + 1));
  await follower.until(/RunPodSandbox +ns\/pod 0000000000000 .* OK/);
  await journal.append(after.slice(completed + 1));
  await follower.until(/container exited +ns\/pod c 0000000000000 .* exit 7, Error/);
  assert.equal(follower.output().match(/RunPodSandbox/g)?.length, 1);
  assert.ok(follower.isAlive());
});

test('nothing is missed and nothing comes twice, however it is written', async (t) => {
  const { journal, follower } = await follow(t, [restart(1)], '--json');
  await follower.until(/number 1\./);
  let seq = 2;
  // One by one, each only after the one before was shown: the last commit is never left lying.
  for (; seq <= 25; seq += 1) {
    await journal.append([restart(seq)]);
    await follower.until(new RegExp(`number ${seq}\\.`));
  }
  // In bursts, without waiting.
  for (; seq <= 500; seq += 1) void journal.append([restart(seq)]);
  await follower.until(/number 500\./);
  const seen = [...follower.output().matchAll(/number (\d+)\./g)].map(([, number]) => Number(number));
  assert.deepEqual(
    seen,
    Array.from({ length: 500 }, (_, index) => index + 1),
  );
});

test('read calls are followed too, and filters hold', async (t) => {
  const { journal, follower } = await follow(t, [restart(1)], '--reads', '--failed', '--limit', '0');
  await follower.until(/TIME/);
  const row = { atNs: startNs, durationNs: 1n, callerPid: 1, callerUid: 0, subject: '' };
  journal.appendRead({ ...row, method: 'ListContainers', code: 0 });
  journal.appendRead({ ...row, method: 'ContainerStatus', code: 5 });
  await follower.until(/ContainerStatus .* NOT_FOUND/);
  assert.doesNotMatch(follower.output(), /ListContainers|number 1/);
});

test('a pod that is made later is recognised by its name', async (t) => {
  const { before, after } = await story();
  const { journal, follower } = await follow(t, before, '--pod', 'ns/pod');
  await follower.until(/TIME/);
  await journal.append(after);
  await follower.until(/container exited/);
  assert.doesNotMatch(follower.output(), /PullImage|network configured/);
});

describe('with a cursor', () => {
  test('it goes on where it was killed, with the call that was under way then', async (t) => {
    const { before, after } = await story();
    const cut = after.findIndex(({ type, body }) => type === 'call.completed' && body.includes('RunPodSandbox'));
    const cursorFile = join(await tempDir(t), 'cursor');
    const words = ['--events', '--cursor-file', cursorFile];
    const { journal, path, follower } = await follow(t, before, ...words);
    const last = before.length + cut;
    await follower.until(/network configured/);
    // What has come to stand after another line was saved before that line was written.
    await journal.append([...after.slice(0, cut), restart(last + 1)]);
    await follower.until(new RegExp(`number ${last + 1}\\.`));
    await journal.append([restart(last + 2)]);
    await follower.until(new RegExp(`number ${last + 2}\\.`));
    assert.doesNotMatch(follower.output(), /RunPodSandbox/);
    follower.kill('SIGKILL');
    await follower.ended;

    const { call, body } = after[cut] ?? {};
    await journal.append([{ ...restart(last + 3), type: 'call.completed', call: call ?? null, body: body ?? '' }]);
    const again = await startProcess(t, [program, 'history', '--root', dirname(path), '--follow', ...words]);
    await again.until(/RunPodSandbox +ns\/pod 0000000000000 .* OK/);
    await journal.append([restart(last + 4)]);
    await again.until(new RegExp(`number ${last + 4}\\.`));
    assert.doesNotMatch(again.output(), new RegExp(`network configured|PullImage|number ${last + 1}\\.`));
    assert.match(again.output(), / {2}pod requested/);
    assert.equal(again.output().match(/RunPodSandbox/g)?.length, 1);
  });

  test('--since says where the first time begins, and no later one', async (t) => {
    const cursorFile = join(await tempDir(t), 'cursor');
    // Of records that come from now on: none is that late.
    const words = ['--since', '2200-01-01', '--cursor-file', cursorFile];
    const { journal, path, follower } = await follow(t, [restart(1)], ...words);
    await follower.until(/TIME/);
    follower.kill('SIGKILL');
    await follower.ended;
    await journal.append([restart(2), restart(3)]);
    const again = await startProcess(t, [program, 'history', '--root', dirname(path), '--follow', ...words]);
    await again.until(/number 3\./);
    assert.match(again.output(), /number 2\./);
    assert.doesNotMatch(again.output(), /number 1\./);
  });

  test('what a reader that has gone did not get comes again', async (t) => {
    const dir = await tempDir(t);
    const { journal } = openJournal({ path: join(dir, 'journal.db') });
    onCleanup(t, () => journal.close());
    // A daemon that takes its time to record the end of the read, for which the process lives on.
    const daemon = createServer(() => undefined).listen(join(dir, SOCKET_NAME));
    onCleanup(t, () => void daemon.close());
    const facts = { version: '1', rootDir: dir, stateDir: dir, node: { hostname: 'node1' } };
    const started = { facts, rebooted: false, deadTasks: [], crash: null };
    await journal.append([{ ...restart(1), type: 'daemon.started', body: JSON.stringify(started) }]);
    for (const command of ['history --json', 'export']) {
      const cursorFile = join(dir, `${command}.cursor`);
      const words = [...command.split(' '), '--root', dir, '--follow', '--cursor-file', cursorFile];
      // It leaves when it has read the first line.
      const line = words.map((word) => `'${word}'`).join(' ');
      const left = await startProcess(t, ['sh', '-c', `${program} ${line} | head -n 1`]);
      await left.until(/"seq":1,/);
      const next = journal.head().seq + 1;
      await journal.append([restart(next)]);
      await left.ended;
      const again = await startProcess(t, [program, ...words]);
      await again.until(new RegExp(`"seq":${next},`));
      assert.doesNotMatch(again.output(), /"seq":1,/);
      again.kill('SIGKILL');
      await again.ended;
    }
  });

  test('what it cannot go on from is refused with what can be done', async (t) => {
    const cursorFile = join(await tempDir(t), 'cursor');
    const root = await rootWith(t, [restart(1)]);
    const refused = async (...words: readonly string[]): Promise<string> => {
      const said = await scribe(['history', '--root', root.dir, '--cursor-file', cursorFile, ...words]);
      assert.notEqual(said.exitStatus, 0);
      return said.stderr;
    };
    assert.match(await refused(), /--cursor-file goes with --follow/);
    assert.match(await refused('--follow', '--limit', '3'), /and so does --limit/);
    assert.match(await refused('--follow', '--reads'), /calls that only read have none/);
    assert.match(await refused('--follow', '--method', 'Status'), /calls that only read have none/);
    await writeFile(cursorFile, 'something else');
    assert.match(await refused('--follow'), /is no cursor of scribe: name another file, or remove it to begin anew/);
    await writeFile(cursorFile, JSON.stringify({ log: 'another', seq: 1 }));
    assert.match(await refused('--follow'), /is of another, and this journal is scribe\.journal/);
    const tree = openTree(root.journalPath);
    await writeFile(cursorFile, JSON.stringify({ log: tree.origin, seq: 2 }));
    tree.close();
    assert.match(await refused('--follow'), /has come to record 2, and this journal ends at 1: an older copy/);
  });
});

test('a copy that is put back after the daemon was killed is opened, and ends whoever follows what was there', async (t) => {
  const { journal, path, follower } = await follow(t, [restart(1)]);
  await follower.until(/number 1\./);
  const copy = `${path}.copy`;
  await backUpJournal(path, copy);
  await journal.close();
  // As one that was killed leaves it: with a log that is not moved in, which the follower keeps the index of.
  const killed = connectWriter(path);
  killed.exec('CREATE TABLE room (content BLOB)');
  killed.prepare('INSERT INTO room VALUES (zeroblob(?))').run(100_000);
  killed.close();
  assert.ok(statSync(`${path}-wal`).size > 100_000);
  // Half there for a while, in which the follower looks.
  await truncate(path, 4096);
  await writeFile(`${path}-wal`, '');
  await setTimeout(300);
  await copyFile(copy, path);
  const { journal: next } = openJournal({ path });
  onCleanup(t, () => next.close());
  await next.append([restart(2)]);
  assert.equal(await follower.ended, 1);
  assert.match(follower.output(), /journal\.db was replaced or removed; start again to follow the new journal\./);
});

for (const [what, moved] of [
  ['a journal', (path: string) => path],
  ['a root directory', dirname],
] as const)
  test(`${what} that is replaced ends it with a sentence`, async (t) => {
    const { path, follower } = await follow(t, [restart(1)]);
    await follower.until(/number 1\./);
    const aside = `${moved(path)}.corrupt-1`;
    await rename(moved(path), aside);
    onCleanup(t, () => rename(aside, moved(path)));
    assert.equal(await follower.ended, 1);
    assert.match(follower.output(), /journal\.db was replaced or removed; start again to follow the new journal\./);
  });

test('a journal that another one is copied over, where it lies, ends it with a sentence', async (t) => {
  const { journal, path, follower } = await follow(t, [restart(1)]);
  await follower.until(/number 1\./);
  await journal.close();
  const other = await rootWith(t, [
    { ...restart(2), seq: 1 },
    { ...restart(3), seq: 2 },
  ]);
  await copyFile(other.journalPath, path);
  assert.equal(await follower.ended, 1);
  assert.match(follower.output(), /journal\.db was replaced or removed; start again to follow the new journal\./);
  assert.doesNotMatch(follower.output(), /number [23]\./);
});

test('a signal that tells it to end does so, with no daemon that could record it', async (t) => {
  const { follower } = await follow(t, [restart(1)]);
  await follower.until(/number 1\./);
  follower.kill('SIGTERM');
  assert.equal(await follower.ended, 'SIGTERM');
});
