/** `scribe export` into a file: the cursor, which loses nothing, disks that are full, and files that others rotate. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { openCursor } from '../../src/cli/cursor.ts';
import { openJournal } from '../../src/journal/open.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { eventually } from '../support/pods.ts';
import { startProcess } from '../support/process.ts';
import { fillAtOnce, mountSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type Story, tell } from './story.ts';
import { fails, jsonLines, type Root, rootWith, scribe } from './support.ts';

const owner = cleanupAfterAll();

let story: Story;
let root: Root;
before(async () => {
  story = await tell();
  root = await rootWith(owner, story.records);
});

const append = async ({ journalPath }: Root, records: readonly JournalRecord[]): Promise<void> => {
  const { journal } = openJournal({ path: journalPath });
  await journal.append(records);
  await journal.close();
};

describe('export into a file', () => {
  test('that is called - is one to standard output', async () => {
    const [plain, named] = [
      await scribe(['export', '--root', root.dir]),
      await scribe(['export', '--root', root.dir, '--output', '-']),
    ];
    assert.ok(plain.stdout !== '');
    assert.deepEqual(named, plain);
    assert.ok(!existsSync('-'));
  });

  test('a cursor goes on where the target is, and belongs to one journal', async () => {
    const dir = await tempDir(owner);
    const half = Math.floor(story.records.length / 2);
    const growing = await rootWith(owner, story.records.slice(0, half));
    const [output, cursor] = [join(dir, 'out.json'), join(dir, 'cursor')];
    const words = ['export', '--root', growing.dir, '--output', output, '--cursor-file', cursor];
    const seqs = (): number[] => jsonLines<{ seq: number }>(readFileSync(output, 'utf8')).map(({ seq }) => seq);
    const all = story.records.map(({ seq }) => seq);
    assert.equal((await scribe(words)).exitStatus, 0);
    assert.deepEqual(seqs(), all.slice(0, half));
    await append(growing, story.records.slice(half));
    const saved = readFileSync(cursor);
    assert.equal((await scribe(words)).exitStatus, 0);
    assert.equal((await scribe(words)).exitStatus, 0);
    assert.deepEqual(seqs(), all);

    // A cursor that was not saved any more: what was sent since comes again, and nothing is lost.
    writeFileSync(cursor, saved);
    assert.equal((await scribe(words)).exitStatus, 0);
    assert.deepEqual(seqs(), [...all, ...all.slice(half)]);

    const other = await rootWith(
      owner,
      story.records.slice(0, 1).map((record) => ({ ...record, mono: 1, monoNs: 1n })),
    );
    const refused = await scribe(['export', '--root', other.dir, '--cursor-file', cursor]);
    assert.equal(refused.exitStatus, 1);
    assert.match(refused.stderr, /is of scribe\.journal\/[0-9a-f]{32}, and this journal is/);
  });

  test('a cursor is not of a journal that was put back, though that has grown past it by now', async (t) => {
    const dir = await tempDir(t);
    const half = Math.floor(story.records.length / 2);
    const [before, after] = [story.records.slice(0, half), story.records.slice(half)];
    const [gone, back] = [await rootWith(t, before), await rootWith(t, before)];
    await append(gone, after.slice(0, 2));
    await append(
      back,
      after.map((record) => ({ ...record, atNs: record.atNs + 1n })),
    );
    const [output, cursor] = [join(dir, 'out.json'), join(dir, 'cursor')];
    const words = (root: Root): string[] => ['export', '--root', root.dir, '--output', output, '--cursor-file', cursor];
    assert.equal((await scribe(words(gone))).exitStatus, 0);
    const sent = readFileSync(output);
    await fails(
      words(back),
      1,
      /has come to record \d+, and in this journal that is another one: an older copy was put back\. Remove/,
    );
    assert.deepEqual(readFileSync(output), sent);

    // As an older scribe saved it.
    const { log, seq } = JSON.parse(readFileSync(cursor, 'utf8')) as { readonly log: string; readonly seq: number };
    writeFileSync(cursor, JSON.stringify({ log, seq }));
    assert.equal((await scribe(words(gone))).exitStatus, 0);
  });

  test('a journal that is put back under whoever follows it moves no cursor', async (t) => {
    const cursor = join(await tempDir(t), 'cursor');
    const journal = { bodyHash: Buffer.alloc(32, 1) };
    const reader = { headSeq: () => 9, hashesOf: () => ({ bodyHash: journal.bodyHash, hash: null }) };
    using opened = await openCursor(cursor, root.journalPath, reader, null);
    await opened.save(5);
    journal.bodyHash = Buffer.alloc(32, 2);
    await assert.rejects(opened.save(7), /has come to record 5, and in this journal that is another one/);
    assert.match(readFileSync(cursor, 'utf8'), /"seq":5/);
  });

  test('a cursor is of one target at a time', async (t) => {
    const dir = await tempDir(t);
    const cursor = join(dir, 'cursor');
    const words = ['--root', root.dir, '--follow', '--cursor-file', cursor];
    const program = join(import.meta.dirname, '../../bin/scribe');
    const follower = await startProcess(t, [program, 'export', ...words, '--output', join(dir, 'one.json')]);
    await eventually('it has all', async () => existsSync(cursor) && /"seq":[1-9]/.test(readFileSync(cursor, 'utf8')));
    for (const command of ['export', 'history'])
      await fails(
        [command, ...words],
        1,
        /--cursor-file \S+cursor is in use: process \d+ holds \S+cursor\.lock\. Each target needs a cursor of its own\.\n$/,
      );
    await follower.stop();
    const { exitStatus, stderr } = await scribe(['export', '--root', root.dir, '--cursor-file', cursor]);
    assert.equal(exitStatus, 0, stderr);
  });

  test('a cursor that cannot be saved any more has nothing given that would come each time', async (t) => {
    const dir = await tempDir(t);
    const [output, cursor] = [join(dir, 'out.json'), join(dir, 'cursor')];
    const words = ['export', '--root', root.dir, '--output', output, '--cursor-file', cursor];
    assert.equal((await scribe(words)).exitStatus, 0);
    const { log } = JSON.parse(readFileSync(cursor, 'utf8')) as { readonly log: string };
    writeFileSync(cursor, JSON.stringify({ log, seq: 2 }));
    const before = readFileSync(output, 'utf8');
    // What is to become the cursor cannot be written there.
    mkdirSync(`${cursor}.new`);
    await fails(words, 1, /--cursor-file \S+cursor cannot be written: EISDIR/);
    assert.equal(readFileSync(output, 'utf8'), before);
  });

  test('a cursor wins over --since, which is another moment each time', async () => {
    const dir = await tempDir(owner);
    const all = story.records.map(({ seq }) => seq);
    const half = Math.floor(all.length / 2);
    const growing = await rootWith(owner, story.records.slice(0, half));
    const [output, cursor] = [join(dir, 'out.json'), join(dir, 'cursor')];
    const sinceThen = async (...since: readonly string[]): Promise<number[]> => {
      const words = ['--output', output, '--cursor-file', cursor, '--since', ...since];
      const { exitStatus, stderr } = await scribe(['export', '--root', growing.dir, ...words]);
      assert.equal(exitStatus, 0, stderr);
      return jsonLines<{ seq: number }>(readFileSync(output, 'utf8')).map(({ seq }) => seq);
    };
    // Nothing is that late yet, but from here on all is asked for.
    assert.deepEqual(await sinceThen('2200-01-01'), []);
    await append(growing, story.records.slice(half, half + 2));
    assert.deepEqual(await sinceThen('2200-01-01'), all.slice(half, half + 2));
    await append(growing, story.records.slice(half + 2));
    assert.deepEqual(await sinceThen(String(all.length)), all.slice(half));
  });

  test('one that goes on waits for room on a full disk, and leaves no half of a line', async (t) => {
    const dir = await tempDir(t);
    await mountSmallDisk(t, dir, 1);
    const output = join(dir, 'out.json');
    // As one leaves it that was killed while it wrote.
    writeFileSync(output, '{"node":"node7","seq":1,"ti');
    const filling = await fillAtOnce(dir);
    const program = join(import.meta.dirname, '../../bin/scribe');
    const words = ['--output', output, '--cursor-file', join(await tempDir(t), 'cursor')];
    const follower = await startProcess(t, [program, 'export', '--root', root.dir, '--follow', ...words]);
    await follower.until(/out\.json did not take the records: ENOSPC.*They wait until it does\./);
    rmSync(filling);
    await follower.until(/out\.json takes records again/);
    const [half, ...lines] = readFileSync(output, 'utf8').split('\n');
    assert.equal(half, '{"node":"node7","seq":1,"ti');
    const seqs = jsonLines<{ seq: number }>(lines.join('\n')).map(({ seq }) => seq);
    assert.deepEqual(
      seqs,
      story.records.map(({ seq }) => seq),
    );
  });

  test('one that goes on writes into the file that is at its path, whoever rotates what was there', async (t) => {
    const dir = await tempDir(t);
    const third = Math.floor(story.records.length / 3);
    const parts = [0, 1, 2].map((part) =>
      story.records.slice(part * third, part === 2 ? undefined : (part + 1) * third),
    );
    const seqsOf = (records: readonly JournalRecord[] | undefined): number[] => (records ?? []).map(({ seq }) => seq);
    const growing = await rootWith(t, parts[0] ?? []);
    const output = join(dir, 'out.json');
    const program = join(import.meta.dirname, '../../bin/scribe');
    const follower = await startProcess(t, [program, 'export', '--root', growing.dir, '--follow', '--output', output]);
    const has = async (part: number): Promise<void> => {
      const written = async (): Promise<boolean> => {
        const text = existsSync(output) ? readFileSync(output, 'utf8') : '';
        // It may be in the middle of a line.
        if (!text.endsWith('\n')) return false;
        const [seqs, before, wanted] = [seqsOf(jsonLines(text)), seqsOf(parts[part - 1]), seqsOf(parts[part])];
        // What is renamed before it is durable comes once more, and nothing else does.
        return isDeepStrictEqual(seqs, wanted) || isDeepStrictEqual(seqs, [...before, ...wanted]);
      };
      await eventually(`part ${part} is in the file`, written).catch((error: unknown) =>
        assert.fail(`${String(error)}\n${follower.output()}`),
      );
    };
    await has(0);
    // As logrotate does it, and with copytruncate.
    renameSync(output, `${output}.1`);
    await append(growing, parts[1] ?? []);
    await has(1);
    truncateSync(output);
    await append(growing, parts[2] ?? []);
    await has(2);
    assert.deepEqual(seqsOf(jsonLines(readFileSync(`${output}.1`, 'utf8'))), seqsOf(parts[0]));
  });

  test('who goes on waits for room for the cursor, too', async (t) => {
    const program = join(import.meta.dirname, '../../bin/scribe');
    for (const command of ['export', 'history']) {
      const dir = await tempDir(t);
      await mountSmallDisk(t, dir, 1);
      const cursor = join(dir, 'cursor');
      const filling = await fillAtOnce(dir);
      const words = [command, '--json', '--root', root.dir, '--follow', '--cursor-file', cursor];
      const follower = await startProcess(t, [
        program,
        ...words.filter((word) => command === 'history' || word !== '--json'),
      ]);
      await follower.until(/cursor cannot be written: ENOSPC.*Nothing more is given until it can\./);
      rmSync(filling);
      await follower.until(/cursor can be written again\./);
      // Where there was nothing yet it is at 0.
      await eventually('it goes on', async () => /"seq":[1-9]/.test(readFileSync(cursor, 'utf8')));
    }
  });
});
