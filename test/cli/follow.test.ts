/** `scribe history --follow` in a process of its own, while this one writes the journal. */
import assert from 'node:assert/strict';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { openJournal } from '../../src/journal/open.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { exitOf, runContainer } from '../engine/rig.ts';
import { onCleanup } from '../support/cleanup.ts';
import { type BackgroundProcess, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { recordsOf, startNode } from './support.ts';

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

test('a journal that is replaced ends it with a sentence', async (t) => {
  const { path, follower } = await follow(t, [restart(1)]);
  await follower.until(/number 1\./);
  await rename(path, `${path}.corrupt-1`);
  assert.equal(await follower.ended, 1);
  assert.match(follower.output(), /journal\.db was replaced or removed; start again to follow the new journal\./);
});
