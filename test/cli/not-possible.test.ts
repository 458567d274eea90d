/** What commands say, and with which exit status, when what is asked for cannot be: each names what is wrong, and no stack is shown. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { before, test } from 'node:test';
import type { DoctorResult } from '../../src/adapters/doctor/result.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { eventually } from '../support/pods.ts';
import { run, runOk } from '../support/process.ts';
import { fillAtOnce, freeBytesOf, mountBrokenDisk, mountSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tell } from './story.ts';
import { tamper, withoutTriggers } from '../journal/support.ts';
import { fails, jsonLines, rootWith, scribe } from './support.ts';
import { serveJournal } from './ui/served.ts';

const owner = cleanupAfterAll();
const program = join(import.meta.dirname, '../../src/cli/main.ts');
let dir: string;
let root: string;
let damaged: string;
let headSeq: number;

before(async () => {
  dir = await tempDir(owner);
  const { records } = await tell();
  headSeq = records.length;
  root = (await rootWith(owner, records)).dir;
  const bad = records.map((record) => (record.seq === 40 ? { ...record, body: 'no JSON' } : record));
  damaged = (await rootWith(owner, bad)).dir;
  await mkdir(join(dir, 'empty'));
  await writeFile(join(dir, 'empty.db'), '');
  await writeFile(join(dir, 'words'), 'some words\n');
  const { exitStatus, stderr } = await scribe(['journal', 'backup', join(dir, 'copy'), '--root', root]);
  assert.equal(exitStatus, 0, stderr);
  await writeFile(join(dir, 'cut.db'), Buffer.from('SQLite format 3\0'));
  await truncate(join(dir, 'cut.db'), 10_000);
});

test('a moment that has not come yet, or was before all records', async () => {
  for (const words of [
    ['at', '2100-01-01', 'get', 'pods'],
    ['diff', '1', '2100-01-01'],
  ])
    await fails([...words, '--root', root], 1, /That time has not come yet: the newest record is \d+; "now" is/);
  await fails(['at', '1999-01-01', 'get', 'pods', '--root', root], 1, /by then: the journal begins at \d{4}-.*Z\.$/m);
  await fails(
    ['at', String(headSeq + 1), 'get', 'pods', '--root', root],
    1,
    /There is no record \d+: the journal ends/,
  );
  await fails(['at', 'now', 'get', 'blobs', '--root', root], 2, /no "blobs" to get; .* pods, containers, images\.$/m);
  await fails(['history', '--method', 'Zzzz', '--root', root], 2, /there is no such method; there are Version, .*\.$/m);
});

test('records that are no JSON take nothing else from a history, and are named in it', async (t) => {
  const { records } = await tell();
  const types = ['call.received', 'call.completed', 'container.exited', 'effect.ended'];
  const hit = new Set(types.map((type) => records.findLast((record) => record.type === type)?.seq));
  const { dir: broken } = await rootWith(
    t,
    records.map((record) => (hit.has(record.seq) ? { ...record, body: `z${record.body.slice(1)}` } : record)),
  );
  const said = async (...words: readonly string[]): Promise<string> => {
    const { exitStatus, stdout, stderr } = await scribe([...words, '--root', broken]);
    assert.deepEqual([exitStatus, /^ {4}at /m.test(stderr)], [0, false], `${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  const shown = await said('history', '--events');
  assert.equal(shown.match(/cannot be read: see scribe verify/g)?.length, types.length);
  assert.match(shown, /PullImage .* OK/);
  const json = (await said('history', '--json', '--events')).trimEnd().split('\n');
  assert.equal(json.length, records.length);
  assert.equal(json.filter((line) => line.includes('"body":{"unreadable":true}')).length, types.length);
  assert.match(await said('history', '--failed'), /RunPodSandbox/);
  assert.match(await said('history', '--pod', 'default/web'), /RemovePodSandbox/);
  await said('history', '--reverse', '--limit', '9');
  await said('why', 'image:registry.test/app:1');
  await fails(['why', String([...hit][0]), '--root', broken], 1, /Record \d+ cannot be read; see scribe verify\./);
  await fails(['report', '--root', broken], 1, /is not what was written: its body is no JSON\. scribe verify names it/);
});

/** With a bit of one of its names turned, so that it is JSON as before. */
const turned = (body: string): string =>
  body.replace(/"([A-Za-z])([A-Za-z]+)":/, (_, first: string, rest: string) => {
    const other = String.fromCharCode(first.charCodeAt(0) ^ 2);
    return `"${other}${rest}":`;
  });

test('a record with another name in it, whichever it is, takes nothing else from what is shown', async (t) => {
  const { records } = await tell();
  const { dir: broken, journalPath } = await rootWith(t, records);
  const change = (seq: number, body: string): void =>
    tamper(journalPath, (db) =>
      withoutTriggers(db, () => db.prepare('UPDATE records SET body = ? WHERE seq = ?').run(body, seq)),
    );
  const said = async (...words: readonly string[]): Promise<string> => {
    const { exitStatus, stdout, stderr } = await scribe([...words, '--root', broken]);
    assert.deepEqual([exitStatus, /^ {4}at /m.test(stderr)], [0, false], `${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  const named = records.filter(({ body }) => turned(body) !== body);
  assert.ok(named.length > 30);
  for (const { seq, body } of named.filter((_, index) => index % 3 === 0)) {
    change(seq, turned(body));
    assert.match(await said('history', '--events', '--limit', '1000'), /cannot be read: see scribe verify/, body);
    assert.match(await said('export', '--since', String(seq), '--until', String(seq)), /"body":\{"unreadable":true\}/);
    await said('at', String(headSeq), 'get', 'pods');
    await said('diff', '2', String(headSeq));
    await said('why', 'image:registry.test/app:1');
    change(seq, body);
  }
  assert.doesNotMatch(await said('history', '--events'), /cannot be read/);
});

test('on the page a record that is no JSON keeps nobody from the others, and is shown as that', async (t) => {
  const { records } = await tell();
  const seq = records.findLast(({ type }) => type === 'container.exited')?.seq ?? Number.NaN;
  const { journalPath: broken } = await rootWith(
    t,
    records.map((record) => (record.seq === seq ? { ...record, body: `z${record.body.slice(1)}` } : record)),
  );
  const { frames, get } = await serveJournal(t, broken);
  assert.equal((await frames().next()).value?.head.count, records.length);
  const shown = await get<{ body: unknown; row: { outcome: string } }>(`record?seq=${seq}`);
  assert.deepEqual([shown.body, shown.row.outcome], [{ unreadable: true }, 'cannot be read: see scribe verify']);
});

test('a journal that is named where its directory belongs', async () => {
  const file = join(root, 'journal.db');
  await fails(
    ['history', '--root', file],
    1,
    new RegExp(`^scribe: ${file} is a file: --root takes the directory that the journal is in, ${root}\\.\n$`),
  );
  await fails(['history', '--journal', file], 2, /^scribe: There is no option --journal; did you mean --root\?\n/);
});

test('a file to replay that is empty, cut short, of something else, or not there', async () => {
  for (const [name, said] of [
    ['empty.db', /empty\.db is empty, and so no journal/],
    ['cut.db', /cut\.db: .*\. A copy that was cut short, or made without journal\.db-wal, is of no use/],
    ['words', /words is neither a journal nor a golden journal/],
    ['none', /There is no journal at .*none\.$/m],
    ['empty', /There is no journal at .*empty\/journal\.db\.$/m],
  ] as const)
    await fails(['replay', join(dir, name)], 1, said);
});

test('an export that cannot be written, of a record that cannot be read, or with a cursor that cannot be kept', async () => {
  await fails(
    ['export', '--root', root, '--output', join(dir, 'none/x')],
    1,
    /--output .*none\/x cannot be written: ENOENT/,
  );
  await fails(
    ['export', '--root', root, '--output', '/dev/full'],
    1,
    /--output \/dev\/full did not take the records: ENOSPC/,
  );
  const cursor = ['--cursor-file', join(dir, 'none/c'), '--output', join(dir, 'out')];
  await fails(['export', '--root', root, ...cursor], 1, /--cursor-file .*none\/c cannot be written: ENOENT/);
  await fails(
    ['export', '--root', root, '--tlog', join(dir, 'words')],
    1,
    /--tlog .*words cannot be written: ENOTDIR.*\. Make/,
  );
  for (const format of ['json', 'ocsf', 'kubernetes-audit', 'cloudevents', 'otlp'])
    for (const level of ['metadata', 'request-response']) {
      const { exitStatus, stderr } = await scribe(['export', '--root', damaged, '--format', format, '--level', level]);
      assert.equal(exitStatus, 0, `${format} ${level}: ${stderr}`);
    }
  const { stdout } = await scribe(['export', '--root', damaged, '--since', '40', '--until', '40']);
  assert.match(stdout, /"body":\{"unreadable":true\}/);
});

test('a directory in the place of a journal is said to be one', async (t) => {
  const odd = await tempDir(t);
  await mkdir(join(odd, 'journal.db'));
  for (const words of [['history'], ['report'], ['verify'], ['journal', 'info'], ['sql', 'SELECT 1']])
    await fails([...words, '--root', odd], 1, /The journal .*journal\.db cannot be read: it is a directory\.$/m);
});

test('standard output that is full ends a command with a sentence', async () => {
  for (const words of ['export', 'history']) {
    const command = `${process.execPath} --no-warnings ${program} ${words} --root ${root} > /dev/full`;
    const { exitCode, stderr } = await run(['sh', '-c', command]);
    assert.equal(stderr, 'scribe: Standard output cannot be written to: ENOSPC: no space left on device, write.\n');
    assert.equal(exitCode, 1);
  }
});

test('results that a disk has room for a part of alone end a command with a sentence', async (t) => {
  const disk = await tempDir(t);
  await mountSmallDisk(t, disk, 1);
  await writeFile(join(disk, 'others'), Buffer.alloc(freeBytesOf(disk) - 8192));
  // In one write, of which the disk takes the beginning.
  const command = `${process.execPath} --no-warnings ${program} export --root ${root} > ${join(disk, 'out')}`;
  const { exitCode, stderr } = await run(['sh', '-c', command]);
  assert.equal((await stat(join(disk, 'out'))).size, 8192);
  assert.equal(stderr, 'scribe: Standard output cannot be written to: ENOSPC: no space left on device, write.\n');
  assert.equal(exitCode, 1);
});

test('a journal where nothing can be written is said to lie there, and to be no other than was written', async (t) => {
  const disk = await tempDir(t);
  await mountSmallDisk(t, disk, 8);
  for (const name of ['journal.db', 'journal.db.key', 'journal.db.head'])
    await copyFile(join(root, name), join(disk, name));
  await runOk(['mount', '-o', 'remount,ro', disk]);
  for (const words of [
    ['history'],
    ['verify'],
    ['report'],
    ['why', '9'],
    ['export'],
    ['prove', '9'],
    ['sql', 'SELECT 1'],
    ['at', 'now', 'get', 'pods'],
    ['diff', '1', '9'],
    ['journal', 'info'],
    ['journal', 'vkey'],
    ['journal', 'backup', join(dir, 'of-the-medium')],
  ])
    await fails(
      [...words, '--root', disk],
      1,
      /^scribe: The journal \S+ cannot be read where it lies, .* elsewhere, and name that directory with --root\.$/m,
    );
  const checks = await scribe(['doctor', '--root', disk, '--json']);
  for (const [check, detail] of [
    ['journal', /cannot be read where it lies/],
    ['overlayfs', /Nothing can be written below .*EROFS/],
  ] as const) {
    const result = jsonLines<DoctorResult>(checks.stdout).find((line) => line.check === check) ?? assert.fail();
    assert.match(result.detail, detail);
    assert.match(result.remedy ?? '', /^Mount it for writing and see that there is room, or put root of \[serve\] /);
  }
  // Some make that copy themselves, whether the journal is named or its root.
  const replayed = await scribe(['replay', '--root', disk]);
  assert.equal(replayed.exitStatus, 0, replayed.stderr);
  const doctor = await scribe(['doctor', '--json', '--root', disk]);
  assert.match(doctor.stdout, /"detail":"The journal \S+ cannot be read where it lies, /);
});

test('a journal on a full disk is said to lie there, and to be no other than was written', async (t) => {
  const disk = await tempDir(t);
  await mountSmallDisk(t, disk, 8);
  for (const name of ['journal.db', 'journal.db.key', 'journal.db.head'])
    await copyFile(join(root, name), join(disk, name));
  await fillAtOnce(disk);
  for (const words of [['history'], ['verify'], ['sql', 'SELECT 1']])
    await fails(
      [...words, '--root', disk],
      1,
      /^scribe: The journal \S+ cannot be read where it lies, on a disk that is full \(SQLite: .*\)\. Copy journal\.db /m,
    );
  const replayed = await scribe(['replay', '--root', disk]);
  assert.equal(replayed.exitStatus, 0, replayed.stderr);
});

test('a journal on a broken disk is said to lie there, and to be no other than was written', async (t) => {
  const [disk, whole] = await Promise.all([tempDir(t), tempDir(t)]);
  for (const name of ['journal.db', 'journal.db.key', 'journal.db.head'])
    await copyFile(join(root, name), join(whole, name));
  await mountBrokenDisk(t, disk, whole);
  const told =
    /The journal \S+ cannot be read, whatever is written in it: .* \(SQLite: .*\)\. See what the kernel says of its disk \(dmesg\)/;
  for (const words of [['history'], ['verify'], ['report'], ['sql', 'SELECT 1'], ['journal', 'info']]) {
    const { exitStatus, stdout, stderr } = await scribe([...words, '--root', disk]);
    assert.equal(exitStatus, 1);
    assert.match(stderr, told, words.join(' '));
    assert.doesNotMatch(stdout + stderr, /not what was written/);
  }
  const doctor = await scribe(['doctor', '--json', '--root', disk]);
  const check = jsonLines<DoctorResult>(doctor.stdout).find((line) => line.check === 'journal') ?? assert.fail();
  assert.match(check.detail, told);
  assert.doesNotMatch(check.remedy ?? '', /scribe verify/);
});

test('a journal of a newer scribe is said to be that, and to be no other than was written', async () => {
  const newer = join(dir, 'newer');
  await mkdir(newer);
  for (const name of ['journal.db', 'journal.db.key', 'journal.db.head'])
    await copyFile(join(root, name), join(newer, name));
  tamper(join(newer, 'journal.db'), (db) =>
    db.exec("CREATE TABLE later (x); INSERT INTO schema SELECT max(version) + 1, 'later.sql', x'00' FROM schema"),
  );
  const before = await readFile(join(newer, 'journal.db'));
  for (const words of [
    ['history'],
    ['verify'],
    ['sql', 'SELECT 1'],
    ['journal', 'info'],
    ['journal', 'compact'],
    ['journal', 'backup', join(dir, 'of-the-newer')],
  ])
    await fails([...words, '--root', newer], 1, /^scribe: The journal \S+ has schema \d+ of a newer scribe; .*\.$/m);
  assert.equal(existsSync(join(dir, 'of-the-newer')), false);
  const doctor = await scribe(['doctor', '--root', newer, '--json']);
  const journal = jsonLines<DoctorResult>(doctor.stdout).find(({ check }) => check === 'journal');
  assert.deepEqual([journal?.status, journal?.remedy], ['problem', 'Use the scribe that wrote it, or a later one.']);
  assert.deepEqual(await readFile(join(newer, 'journal.db')), before);
});

test('a bundle that the disk has no room for leaves nothing behind', async (t) => {
  const disk = await tempDir(t);
  await mountSmallDisk(t, disk, 1);
  const [others, output] = [join(disk, 'others'), join(disk, 'bundle.tar.gz')];
  await writeFile(others, Buffer.alloc(freeBytesOf(disk) - 8192));
  const words = ['bundle', '--root', root, '--since', '1', '--output', output];
  await fails(words, 1, /tar failed to write .*No space left on device/);
  assert.deepEqual(await readdir(disk), ['others']);
  await rm(others);
  assert.equal((await scribe(words)).exitStatus, 0);
});

test('a bundle is there for whoever does not read what is in it, and nothing else is left', async (t) => {
  const [output, temporary] = [join(await tempDir(t), 'bundle.tar.gz'), await tempDir(t)];
  const env = { ...process.env, TMPDIR: temporary };
  const command = `${process.execPath} --no-warnings ${program} bundle --root ${root} --since 1 --output ${output} | true`;
  const { exitCode, stderr } = await run(['sh', '-c', command], { env });
  assert.deepEqual([exitCode, stderr], [0, '']);
  // Whatever takes away what a command leaves has had its time.
  await eventually('what it was made from is gone', async () => (await readdir(temporary)).length === 0);
  await setTimeout(300);
  assert.ok(existsSync(output));
  await fails(['bundle', '--root', root, '--output', '-'], 2, /--output -: a bundle is a file of its own: name one/);
});

test('a bundle that cannot be made where it is wanted is refused before anything is made for it', async () => {
  const there = join(dir, 'words');
  // Where its parts would be made.
  const env = { ...process.env, TMPDIR: join(dir, 'none') };
  const refused = async (output: string, said: RegExp): Promise<void> => {
    const words = ['bundle', '--root', root, '--since', '1', '--output', output];
    const { exitCode, stderr } = await run([process.execPath, program, ...words], { env });
    assert.match(stderr, said);
    assert.equal(exitCode, 1);
  };
  await refused(join(dir, 'bundle.tar.gz'), /made in .*none, which cannot be written: ENOENT.* by TMPDIR\.$/m);
  await refused(there, /words cannot be made: EEXIST.*\. Name another with --output\.$/m);
  await refused(join(dir, 'none/bundle.tar.gz'), /bundle\.tar\.gz cannot be made: ENOENT/);
  assert.equal(await readFile(there, 'utf8'), 'some words\n');
});

test('a copy without its key is not said to be signed by another, and one with it is verified against itself', async () => {
  const copy = join(dir, 'copy');
  const alone = await scribe(['verify', '--root', copy]);
  assert.equal(alone.exitStatus, 1);
  assert.match(
    alone.stdout,
    /signatures cannot be checked\. Name the key with --key \(of a backup its journal\.vkey\)/,
  );
  assert.doesNotMatch(alone.stdout, /signed again/);
  // What could be looked at is right, and is said to be.
  assert.match(alone.stdout, /^every hash is right$/m);
  assert.match(alone.stdout, /^folded from record 1: /m);
  assert.match(alone.stderr, /^scribe: Not all of the journal could be checked: .*signatures cannot be checked/);
  const keyed = ['verify', '--root', copy, '--key', join(copy, 'journal.vkey'), '--against'];
  const { exitStatus, stdout, stderr } = await scribe([...keyed, copy]);
  assert.equal(exitStatus, 0, stderr);
  assert.match(stdout, /journal\.db\.head: the journal contains it, .* and the same key signed/);
  await fails([...keyed, join(dir, 'words')], 1, /words is no checkpoint: a copy of journal\.db\.head or .* is wanted/);
});
