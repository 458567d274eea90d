/** What a command made only for itself goes with it when it is stopped in the middle, whichever way. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, watch } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as otherTurns } from 'node:timers/promises';
import { before, test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { isAlive, type ProcessName, readArguments, readProcessStat } from '../../src/platform/linux/processes.ts';
import { cleanupAfterAll, onCleanup, type Owner } from '../support/cleanup.ts';
import { eventually } from '../support/pods.ts';
import { run, runOk, startProcess } from '../support/process.ts';
import { mountSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const program = join(import.meta.dirname, '../../src/cli/main.ts');
let root: string;

before(async () => {
  // Large enough for a signal to come before the end.
  root = await tempDir(owner);
  await mountSmallDisk(owner, root, 64);
  await makeJournal({ path: join(root, 'journal.db'), records: 20_000, seed: 5 });
});

/** Starts a command, ends it by the signal once `begun` is in `dir`, and resolves when nothing is left there. */
const stopped = async (
  t: Owner,
  words: readonly string[],
  [dir, begun]: readonly [string, RegExp],
  signal: NodeJS.Signals,
): Promise<void> => {
  const told = new AbortController();
  const events = watch(dir, { signal: told.signal });
  const env = { ...process.env, TMPDIR: dir };
  const command = await startProcess(t, [process.execPath, '--no-warnings', program, ...words], { env });
  void command.ended.then(() => told.abort());
  await (async () => {
    for await (const { filename } of events) if (begun.test(filename ?? '')) command.kill(signal);
  })().catch(() => undefined);
  assert.equal(await command.ended, signal, command.output());
  await eventually(`nothing is left in ${dir}`, async () => (await readdir(dir)).length === 0).catch(async (error) =>
    assert.fail(`${String(error)} but ${(await readdir(dir)).join(', ')}`),
  );
};

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const;

test('the unfinished copy of a backup', async (t) => {
  for (const signal of signals) {
    const dir = await tempDir(t);
    await stopped(t, ['journal', 'backup', '--root', root, dir], [dir, /unfinished$/], signal);
  }
});

test('the directories that a backup makes, but none that was there', async (t) => {
  const above = await tempDir(t);
  const outer = join(above, 'node7');
  const dir = join(outer, '2026-11-21');
  const stopBackup = async (): Promise<void> => {
    const command = await startProcess(t, [process.execPath, program, 'journal', 'backup', '--root', root, dir]);
    while (command.isAlive() && !existsSync(join(dir, 'journal.db.unfinished'))) await otherTurns();
    command.kill('SIGTERM');
    assert.equal(await command.ended, 'SIGTERM', command.output());
  };
  await stopBackup();
  await eventually('they are gone', async () => (await readdir(above)).length === 0);
  await mkdir(outer);
  await stopBackup();
  await eventually('what it made in it is gone', async () => (await readdir(outer)).length === 0);
  assert.deepEqual(await readdir(above), ['node7']);
});

test('a copy of which not every hash is verified', async (t) => {
  const dir = await tempDir(t);
  await stopped(t, ['journal', 'backup', '--root', root, dir], [dir, /vkey$/], 'SIGINT');
});

test('what a bundle is made from', async (t) => {
  for (const signal of signals) {
    const dir = await tempDir(t);
    const words = ['bundle', '--root', root, '--output', join(dir, 'bundle.tar.gz')];
    await stopped(t, words, [dir, /^scribe-bundle-/], signal);
  }
});

const childOf = async (parent: number): Promise<ProcessName | undefined> => {
  const pids = (await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8')).trim().split(' ').map(Number);
  for (const pid of pids) {
    const [stat, args] = [await readProcessStat(pid), await readArguments(pid)];
    if (stat !== null && args.some((word) => word.endsWith('sql/child.ts')))
      return { pid, startTicks: stat.startTicks };
  }
  return undefined;
};

test('the process that answers a question in SQL', async (t) => {
  const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n, calls';
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const command = await startProcess(t, [process.execPath, program, 'sql', '--root', root, endless]);
    const { pid, startTicks } = await eventually('it has a child that answers', () => childOf(command.pid));
    onCleanup(t, async () => void (await run(['kill', '-9', String(pid)])));
    command.kill(signal);
    assert.equal(await command.ended, signal);
    await eventually(`the child is gone, too, by ${signal}`, async () => !(await isAlive({ pid, startTicks })));
  }
});

test('the copy of a journal that cannot be read where it lies', async (t) => {
  await rm(join(root, 'journal.db-shm'), { force: true });
  await runOk(['mount', '-o', 'remount,ro', root]);
  for (const command of ['replay', 'ui'])
    for (const signal of command === 'ui' ? (['SIGHUP', 'SIGKILL'] as const) : signals) {
      const dir = join(await tempDir(t), command);
      await mkdir(dir);
      await stopped(t, [command, join(root, 'journal.db')], [dir, /^scribe-journal-/], signal);
    }
});
