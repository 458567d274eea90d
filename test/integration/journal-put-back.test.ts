/**
 * A journal that is put back to an older copy, or deleted, under a real node: nothing that it does not know of is deleted,
 * what runs unknown to it is told and ended by a command only, and somebody has to acknowledge it.
 */
import assert from 'node:assert/strict';
import { copyFile, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { cleanupAfterAll } from '../support/cleanup.ts';
import type { Daemon } from '../support/daemon.ts';
import { journalPath, recordsOf } from '../support/journal.ts';
import { processesOf } from '../support/leftovers.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { ownPids, removePod, runPod } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

const timeout = 90_000;

/** Takes the journal away, its lock, key and head aside. */
const removeJournal = async (path: string): Promise<void> => {
  for (const suffix of ['', '-wal', '-shm']) await rm(`${path}${suffix}`, { force: true });
};

/** With its log, where a busy machine has left something in that behind the daemon's end. */
const copyJournal = async (from: string, to: string): Promise<void> => {
  await copyFile(from, to);
  await copyFile(`${from}-wal`, `${to}-wal`).catch(() => undefined);
};

describe('a journal that is not all that was written', () => {
  const owner = cleanupAfterAll();
  let daemon: Daemon;
  let path: string;
  let unknown: Awaited<ReturnType<typeof runPod>>;

  before(async () => {
    ({ daemon } = await startNode(owner));
    path = journalPath(daemon);
  });

  const scribe = async (...words: readonly string[]) => {
    const { exitCode, stdout, stderr } = await daemon.scribe(...words);
    return { exitCode, text: stdout + stderr };
  };
  const places = (): string[] => ['--root', daemon.dirs.root, '--state', daemon.dirs.state];
  const blobs = (): Promise<string[]> => readdir(join(daemon.dirs.root, 'images/blobs/sha256'));
  const shims = async (): Promise<number[]> =>
    (await processesOf(daemon.dirs))
      .filter(({ commandLine }) => commandLine.includes('containerd-shim'))
      .map(({ pid }) => pid);
  const acknowledge = () =>
    scribe('journal', 'acknowledge', '--socket', daemon.socket, '--reason', 'the test put it back');
  const verify = () => scribe('verify', '--root', daemon.dirs.root, '--socket', daemon.socket);

  test('put back: what it does not know of stays, and is listed, until commands end it', { timeout }, async () => {
    await daemon.stop();
    await copyJournal(path, `${path}.copy`);
    await daemon.start();
    unknown = await runPod(daemon, 'unknown', busyboxName, ['sleep', '1000'], { pod: ownPids });
    const known = await blobs();
    assert.equal((await shims()).length, 1);
    await daemon.stop();
    await removeJournal(path);
    await copyJournal(`${path}.copy`, path);

    await daemon.start();
    assert.deepEqual(await blobs(), known);
    assert.equal((await shims()).length, 1);
    assert.deepEqual((await daemon.cri.runtime.listPodSandbox()).items, []);
    const doctor = await scribe('doctor', ...places(), '--socket', daemon.socket);
    assert.match(
      doctor.text,
      /problem +journal +The journal was put back, cut or replaced: .*lost-1.*\n +-> Find out why; then scribe journal acknowledge/,
    );
    assert.match(doctor.text, new RegExp(`strays +shim ${unknown.containerId}|strays +shim ${unknown.podSandboxId}`));
    // Once: the daemon does not say of its own what the journal says.
    assert.doesNotMatch(doctor.text, /problem +daemon/);
    assert.match(doctor.text, new RegExp(`strays +mount .*/netns/${unknown.podSandboxId}`));
    const doubted = await verify();
    assert.equal(doubted.exitCode, 1);
    assert.match(doubted.text, /doubted until scribe journal acknowledge/);

    const acknowledged = await acknowledge();
    assert.equal(acknowledged.exitCode, 0, acknowledged.text);
    assert.match(acknowledged.text, /acknowledged: The journal was put back/);
    const since = await scribe('doctor', ...places(), '--socket', daemon.socket);
    assert.doesNotMatch(since.text, /put back/);
    const verified = await verify();
    assert.equal(verified.exitCode, 0, verified.text);
    const types = (await recordsOf(daemon)).map(({ type }) => type);
    assert.ok(types.includes('journal.doubted') && types.includes('journal.acknowledged'));

    const found = await scribe('journal', 'clear-strays', ...places());
    assert.match(found.text, /found: shim .*\n/);
    assert.equal((await shims()).length, 1, 'it was ended without --yes');
    const cleared = await scribe('journal', 'clear-strays', ...places(), '--yes');
    assert.match(cleared.text, /cleared: shim .*\n/);
    assert.deepEqual(await shims(), []);
    assert.match(
      (await scribe('history', '--root', daemon.dirs.root, '--method', 'ClearStrays')).text,
      /stray.*: shim /,
    );
    assert.match((await scribe('journal', 'clear-strays', ...places())).text, /nothing that no record explains/);
    const { netns, mounts } = await daemon.leftovers();
    assert.deepEqual([netns, mounts], [[], []]);
  });

  test('put back from a backup as its help says, behind a daemon that was killed: it is the backup, and doubted', {
    timeout,
  }, async () => {
    const to = join(await tempDir(owner), 'backup');
    const backedUp = await scribe('journal', 'backup', '--root', daemon.dirs.root, to);
    assert.equal(backedUp.exitCode, 0, backedUp.text);
    // The head knows more than the backup from here on, and the log what is in neither.
    await daemon.stop();
    await daemon.start();
    const lost = await runPod(daemon, 'lost', busyboxName, ['sleep', '1000'], { pod: ownPids });
    await daemon.kill();
    assert.ok((await stat(`${path}-wal`)).size > 0, 'nothing is left in the log');
    for (const name of ['journal.db', 'journal.db-wal']) await copyFile(join(to, name), join(daemon.dirs.root, name));

    await daemon.start();
    assert.doesNotMatch(daemon.log(), /set aside|cannot be folded/);
    assert.deepEqual((await daemon.cri.runtime.listPodSandbox()).items, []);
    assert.match((await verify()).text, /every hash is right[^]*doubted until scribe journal acknowledge/);
    assert.equal((await acknowledge()).exitCode, 0);
    const verified = await verify();
    assert.equal(verified.exitCode, 0, verified.text);
    const cleared = await scribe('journal', 'clear-strays', ...places(), '--yes');
    assert.match(cleared.text, new RegExp(`cleared: shim ${lost.containerId}|cleared: shim ${lost.podSandboxId}`));
    // The backup ends in the middle of a run, which is none that has crashed.
    const reports = (await readdir(daemon.dirs.root)).filter((name) => name.startsWith('crash-'));
    assert.deepEqual(reports, []);
  });

  test('put back behind a daemon that was killed before it signed a head: it is doubted all the same', {
    timeout,
  }, async () => {
    // A head of all that is in the backup.
    await daemon.stop();
    await copyJournal(path, `${path}.signed`);
    await daemon.start();
    const lost = await runPod(daemon, 'lost-soon', busyboxName, ['sleep', '1000'], { pod: ownPids });
    await daemon.kill();
    await removeJournal(path);
    await copyJournal(`${path}.signed`, path);

    await daemon.start();
    assert.deepEqual((await daemon.cri.runtime.listPodSandbox()).items, []);
    const doubted = await verify();
    assert.equal(doubted.exitCode, 1, doubted.text);
    assert.match(doubted.text, /doubted until scribe journal acknowledge ends that: The journal was put back/);
    assert.match((await scribe('doctor', ...places())).text, /The journal was put back, cut or replaced/);
    // What was killed in its turn knows the doubt from its journal.
    await daemon.kill();
    await daemon.start();
    assert.equal((await verify()).exitCode, 1);
    assert.equal((await acknowledge()).exitCode, 0);
    await daemon.kill();
    await daemon.start();
    const verified = await verify();
    assert.equal(verified.exitCode, 0, verified.text);
    const cleared = await scribe('journal', 'clear-strays', ...places(), '--yes');
    assert.match(cleared.text, new RegExp(`cleared: shim ${lost.containerId}|cleared: shim ${lost.podSandboxId}`));
  });

  test('deleted: no image content goes before somebody acknowledges it', { timeout }, async () => {
    const all = await blobs();
    assert.ok(all.length > 0);
    await daemon.stop();
    await removeJournal(path);
    await daemon.start();
    await daemon.stop();
    // Not at the next start either, when the journal is no new one.
    await daemon.start();
    assert.deepEqual(await blobs(), all);
    assert.equal((await verify()).exitCode, 1);
    const acknowledged = await acknowledge();
    assert.equal(acknowledged.exitCode, 0, acknowledged.text);
    await daemon.stop();
    await daemon.start();
    const { images } = await daemon.cri.image.listImages();
    assert.deepEqual([images, await blobs()], [[], []]);
    await daemon.cri.image.pullImage({ image: { image: busyboxName } });
    const pod = await runPod(daemon, 'after', busyboxName, ['sleep', '1000'], { pod: ownPids });
    await removePod(daemon, pod.podSandboxId);
  });
});
