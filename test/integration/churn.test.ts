/**
 * A daemon that is killed again and again while clients make and remove pods: after each restart it and the machine
 * agree, when all is removed nothing is left, and the journal proves it. SCRIBE_KILLS sets how many kills (50).
 * Runs alone: it takes the whole machine.
 */
import assert from 'node:assert/strict';
import { copyFile, open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { agreement } from '../support/agreement.ts';
import { startChurn } from '../support/churn.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { removeAllPods, shimsKept } from '../support/daemon.ts';
import { headOf, journalPath, recordsOf, stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, keptShimsEnd } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';
import { assertReplays } from '../support/replayed.ts';

const kills = Number(process.env['SCRIBE_KILLS'] ?? 50);
const clients = 5;
const flips = 5;

describe(`a daemon that is killed ${kills} times`, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner, { keptShims: shimsKept });
  });

  test('agrees with the machine after each restart, and leaves nothing when all is removed', async (t) => {
    const { daemon } = node;
    const churn = startChurn(daemon, busyboxName, clients);
    for (let kill = 0; kill < kills; kill += 1) {
      await sleep(50 + 1500 * Math.random() ** 2);
      await daemon.kill();
      await churn.pause();
      if (kill % 5 === 4) {
        // Once more, at any moment of the start and of what it finds to do.
        await daemon.launch();
        await sleep(Math.random() * 1000);
        await daemon.kill();
      }
      await daemon.start();
      await agreement(daemon).catch((error: unknown) => {
        throw new Error(`after kill ${kill + 1}: ${String(error)}\n${daemon.log()}`);
      });
      churn.resume();
    }
    await churn.stop();
    const { pods, forgotten, interrupted } = churn.counts();
    t.diagnostic(
      `${pods} pods, ${forgotten} of them forgotten, ${interrupted} calls interrupted, ${headOf(daemon)} records`,
    );
    assert.ok(pods > kills / 5);

    await removeAllPods(daemon.cri);
    await eventually('nothing is listed', async () => (await daemon.cri.runtime.listPodSandbox()).items.length === 0);
    await keptShimsEnd(daemon);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    const { sandboxes, containers, names, effects } = stateOf(daemon);
    assert.deepEqual([sandboxes.size, containers.size, names.size, effects.size], [0, 0, 0, 0]);
  });

  test('has a journal that verifies, of every life', async () => {
    const { daemon } = node;
    const { exitCode, stdout, stderr } = await daemon.scribe('verify', '--root', daemon.dirs.root);
    assert.equal(exitCode, 0, stdout + stderr);
    const starts = await recordsOf(daemon, { types: ['daemon.started'] });
    assert.ok(starts.length > kills);
  });

  test('C13: and is decided again as it was, with every request, over all lives', async (t) => {
    const { decisions, requests, events } = await assertReplays(node.daemon);
    t.diagnostic(`${decisions} decisions, ${events} records that followed, ${requests} requests of effects`);
  });

  test('C9: any single bit that flips in a record is found', async (t) => {
    const { daemon } = node;
    const { root } = daemon.dirs;
    await daemon.stop();
    const records = await recordsOf(daemon, {});
    const file = journalPath(daemon);
    for (let flip = 0; flip < flips; flip += 1) {
      const copy = await tempDir(t);
      for (const name of await readdir(dirname(file)))
        if (name.startsWith(`${basename(file)}.`)) await copyFile(join(root, name), join(copy, name));
      copyWithoutGaps(file, join(copy, basename(file)));
      const record = records[Math.floor((records.length * (flip + Math.random())) / flips)];
      assert.ok(record);
      await flipBitOf(join(copy, basename(file)), record.seq);
      const { exitCode, stdout, stderr } = await daemon.scribe('verify', '--root', copy);
      assert.equal(exitCode, 1, `record ${record.seq}: ${stdout}${stderr}`);
    }
    const whole = await daemon.scribe('verify', '--root', root);
    assert.equal(whole.exitCode, 0, whole.stdout + whole.stderr);
  });
});

/** SQLite leaves what it has moved where it was, and a bit that flips in there changes nothing: the copy has none of that. */
const copyWithoutGaps = (from: string, to: string): void => {
  const db = new Database(from, { readonly: true });
  try {
    db.prepare('VACUUM INTO ?').run(to);
  } finally {
    db.close();
  }
};

/**
 * Flips a random bit of the record's hashes or of the beginning of its body, which stand one behind the other in its row.
 * A body alone may stand elsewhere too, where nothing is lost with it: one that is `{}` in what SQLite left of a page.
 */
const flipBitOf = async (path: string, seq: number): Promise<void> => {
  const whole = rowOf(path, seq);
  const bytes = Buffer.concat([whole.body_hash, whole.hash, Buffer.from(whole.body)]).subarray(0, 200);
  const file = await open(path, 'r+');
  try {
    const content = await file.readFile();
    const at = content.indexOf(bytes);
    assert.ok(at >= 0 && !content.includes(bytes, at + 1), `record ${seq} is in the journal as it is, once`);
    const where = at + Math.floor(Math.random() * bytes.length);
    const byte = Buffer.from([(content[where] ?? 0) ^ (1 << Math.floor(Math.random() * 8))]);
    await file.write(byte, 0, 1, where);
  } finally {
    await file.close();
  }
};

const rowOf = (path: string, seq: number): { body_hash: Buffer; hash: Buffer; body: string } => {
  const db = new Database(path, { readonly: true });
  try {
    const row = db.prepare('SELECT body_hash, hash, body FROM records WHERE seq = ?').get(seq);
    return row as { body_hash: Buffer; hash: Buffer; body: string };
  } finally {
    db.close();
  }
};
