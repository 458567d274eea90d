/** Journals of which SQLite cannot read a page: what is before that is read, shown and named. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { cp, open } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Tally } from '../../src/cli/replay/run.ts';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import type { KeptResult } from '../../src/journal/kept-checkpoints.ts';
import type { EntryRow, ErrorAnswer, RecordAnswer } from '../../src/ui/answers.ts';
import { tearEnd } from '../journal/support.ts';
import { runOk, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { fails, scribe } from './support.ts';
import { serveJournal } from './ui/served.ts';

const program = join(import.meta.dirname, '../../src/cli/main.ts');

/** As verify names it. */
const firstUnreadable = async (at: string): Promise<number> => {
  const { stdout, exitStatus } = await scribe(['verify', '--root', at]);
  assert.equal(exitStatus, 1);
  // Nobody is to be accused for what the disk has done.
  assert.doesNotMatch(stdout, /rewritten|another journal/);
  const [, first] = /^record ([\d,]+): SQLite cannot read on from here/m.exec(stdout) ?? assert.fail(stdout);
  return Number(first?.replaceAll(',', ''));
};

/** What is in front of the damage is decided again and counted as if nothing were behind it, and is not taken for all. */
const judgedUpTo = async (at: string, whole: string, before: number): Promise<void> => {
  const damage = 'SQLite cannot read on in the journal; scribe verify says what is damaged. Of a copy: ';
  const replayed = await scribe(['replay', '--root', at]);
  assert.equal(replayed.exitStatus, 1);
  const first = (before + 1).toLocaleString('en-US');
  assert.ok(
    replayed.stdout.includes(`: record ${first} cannot be read, so nothing from it on was decided: ${damage}`),
    replayed.stdout,
  );
  const end = `\\(records 1 to ${before.toLocaleString('en-US')}\\): all as recorded`;
  const [, checked = '', journaled = ''] =
    new RegExp(`: ([\\d,]+) decisions checked of ([\\d,]+) journaled ${end}$`, 'm').exec(replayed.stdout) ??
    assert.fail(replayed.stdout);
  // Of the last turn more may have been recorded.
  const number = (text: string): number => Number(text.replaceAll(',', ''));
  assert.equal(number(checked), number(journaled) - 1);
  assert.ok(replayed.stderr.includes(`journal.db: record ${first} cannot be read: ${damage}`), replayed.stderr);
  const { stdout } = await scribe(['replay', '--json', '--root', at]);
  const { unreadable, toSeq } = JSON.parse(stdout) as Tally;
  assert.deepEqual([toSeq, unreadable[0]?.seq, unreadable[0]?.endsAt], [before, before + 1, before]);
  assert.equal((await scribe(['replay', '--root', at, '--until', String(before - 100)])).exitStatus, 0);
  await fails(
    ['replay', '--root', at, '--break-on', 'no.such'],
    1,
    new RegExp(`no decision is like that up to record ${before.toLocaleString('en-US')}\\.$`, 'm'),
  );

  for (const word of ['execs', 'pulls', 'failures', 'restarts']) {
    const counted = await scribe(['report', word, '--json', '--root', at]);
    assert.equal(counted.exitStatus, 1, word);
    assert.equal(
      counted.stdout,
      (await scribe(['report', word, '--json', '--root', whole, '--until', String(before)])).stdout,
    );
    const { length } = counted.stderr.split(
      `scribe: Nothing behind record ${before.toLocaleString('en-US')} is counted: `,
    );
    assert.equal(length, 2, counted.stderr);
  }
  await fails(
    ['report', '--root', at, '--since', String(before + 1)],
    1,
    /^scribe: Nothing behind record [\d,]+ is counted: /,
  );
};

/** Checkpoints that were kept of the journal before it was damaged. */
const heldAgainst = async (at: string, whole: string): Promise<void> => {
  const kept = ['head', 'checkpoint'].flatMap((name) => ['--against', join(whole, `journal.db.${name}`)]);
  const { stdout, exitStatus } = await scribe(['verify', '--json', '--root', at, ...kept]);
  assert.equal(exitStatus, 1);
  const { against } = JSON.parse(stdout) as { readonly against: readonly KeptResult[] };
  assert.deepEqual(
    against.map(({ verdict }) => verdict),
    ['unreadable', 'unreadable'],
  );
};

const cannotReadOn = async (at: string, before: number): Promise<void> => {
  const said = /^scribe: SQLite cannot read on in the journal: database disk image is malformed\. scribe verify says/m;
  for (const command of ['history', 'export']) {
    await fails([command, '--root', at], 1, said);
    const { exitStatus, stdout, stderr } = await scribe([command, '--root', at, '--until', String(before)]);
    assert.equal(exitStatus, 0, `${command}: ${stderr}`);
    assert.ok(stdout.length > 10_000, command);
  }
  assert.equal((await scribe(['report', '--root', at, '--until', String(before)])).exitStatus, 0);
  // All that can be read is there, and not only what is before the page of records that the damaged one is among.
  const { stdout } = await scribe(['export', '--root', at]);
  assert.equal(stdout.trimEnd().split('\n').length, before);
  // As is what was under way there.
  for (const range of [[], ['--until', 'now']])
    for (const [command, ...rest] of [['history'], ['history', '--failed'], ['history', '--json'], ['export']] as const)
      assert.equal(
        (await scribe([command, ...rest, '--root', at, ...range])).stdout,
        (await scribe([command, ...rest, '--root', at, '--until', String(before)])).stdout,
        [command, ...rest, ...range].join(' '),
      );
};

test('a file that is damaged in the middle: each command says what can be done, and what was before it can be read', async (t) => {
  const at = await tempDir(t);
  const path = join(at, 'journal.db');
  await makeJournal({ path, records: 3_000, seed: 5 });
  const whole = await tempDir(t);
  await cp(at, whole, { recursive: true });
  await using file = await open(path, 'r+');
  const { size } = await file.stat();
  const pageBytes = 4_096;
  await file.write(Buffer.alloc(pageBytes, 0xff), 0, pageBytes, Math.floor(size / 2 / pageBytes) * pageBytes);
  const before = (await firstUnreadable(at)) - 1;
  await cannotReadOn(at, before);
  await judgedUpTo(at, whole, before);
  await heldAgainst(at, whole);

  const { frames, get } = await serveJournal(t, path);
  const { value: frame } = await frames().next();
  assert.ok(frame !== undefined);
  const { unreadable, count, throughSeq } = frame.head;
  const missing = unreadable.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  const from = unreadable[0]?.[0] ?? 0;
  assert.equal(count + missing, throughSeq);
  assert.ok(from > before && missing < 300, JSON.stringify(unreadable));
  const last = unreadable.at(-1)?.[1] ?? 0;
  for (const seq of [from - 1, last + 1, throughSeq])
    assert.equal((await get<RecordAnswer>(`record?seq=${seq}`)).seq, seq);
  const listed = await get<EntryRow[]>(`entries?seqs=${last - 1},${last},${throughSeq}`);
  assert.deepEqual(
    listed.map(({ seq }) => seq),
    [throughSeq],
  );
  assert.match((await get<ErrorAnswer>(`record?seq=${last}`)).error, /SQLite cannot read on in the journal/);
  const ui = await startProcess(t, [process.execPath, program, 'ui', path]);
  await ui.until(/^http:\/\/127\.0\.0\.1:/m);
  await ui.until(
    new RegExp(
      `^scribe: Not shown, for SQLite cannot read them: records ${from.toLocaleString('en-US')} to .* scribe verify `,
      'm',
    ),
  );
  assert.equal(ui.isAlive(), true);
});

test('a file that is damaged at the end of its records: what is before that is read, shown and named', async (t) => {
  const at = await tempDir(t);
  const path = join(at, 'journal.db');
  await makeJournal({ path, records: 3_000, seed: 5 });
  const whole = await tempDir(t);
  await cp(at, whole, { recursive: true });
  await tearEnd(path);
  const before = (await firstUnreadable(at)) - 1;
  await cannotReadOn(at, before);
  await judgedUpTo(at, whole, before);
  await heldAgainst(at, whole);
  const dir = await tempDir(t);
  const bundle = join(dir, 'bundle.tar.gz');
  assert.equal((await scribe(['bundle', '--root', at, '--since', '1', '--output', bundle])).exitStatus, 0);
  await runOk(['tar', '-xzf', bundle, '-C', dir, '--strip-components=1']);
  const [told, listed] = [
    readFileSync(join(dir, 'journal.jsonl'), 'utf8'),
    readFileSync(join(dir, 'LISTING.txt'), 'utf8'),
  ];
  assert.equal(told.trimEnd().split('\n').length, before);
  assert.match(listed, /^journal\.jsonl: .*iB: no more than this: SQLite cannot read on/m);
  assert.match(listed, /^report\.jsonl: .*B: no more than this: Nothing behind record [\d,]+ is counted: /m);
  const counted = (await scribe(['report', '--json', '--root', whole, '--until', String(before)])).stdout;
  assert.equal(readFileSync(join(dir, 'report.jsonl'), 'utf8').split('\n').length, counted.split('\n').length);
  await fails(
    ['diff', '1000', String(before + 1), '--root', at],
    1,
    /scribe verify says from which record on, .* or --at\.$/m,
  );
  for (const words of [
    ['diff', '1000', String(before)],
    ['at', String(before), 'get', 'pods'],
  ])
    assert.equal((await scribe([...words, '--root', at])).exitStatus, 0, words.join(' '));

  const { value } = await (await serveJournal(t, path)).frames().next();
  const { unreadable, count, headSeq: newest } = value?.head ?? assert.fail('there is no frame');
  assert.equal(unreadable.length, 1);
  const [[first, last] = [0, 0]] = unreadable;
  assert.deepEqual([last, count, first], [newest, before, before + 1]);
  assert.ok(newest - first < 100, JSON.stringify(unreadable));
  const ui = await startProcess(t, [process.execPath, program, 'ui', path]);
  await ui.until(/^http:\/\/127\.0\.0\.1:/m);
  await ui.until(/^scribe: Not shown, for SQLite cannot read them: records 2,9\d\d to 3,0\d\d\. scribe verify /m);
  assert.equal(ui.isAlive(), true);
});

test('a file that is damaged where the newest names are: records that have none of them are shown', async (t) => {
  const at = await tempDir(t);
  const path = join(at, 'journal.db');
  await makeJournal({ path, records: 3_000, seed: 5 });
  await tearEnd(path, 'names');
  const { stdout, exitStatus } = await scribe(['export', '--root', at]);
  assert.equal(exitStatus, 1);
  const shown = stdout.trimEnd().split('\n').length;
  const { value } = await (await serveJournal(t, path)).frames().next();
  const { unreadable, count, throughSeq } = value?.head ?? assert.fail('there is no frame');
  // No page is left out for the sake of one record.
  assert.equal(unreadable[0]?.[0], shown + 1);
  assert.equal(count + unreadable.reduce((sum, [first, last]) => sum + last - first + 1, 0), throughSeq);
  assert.ok(count > shown, String(count));
});

test('a file of which an index is damaged: what asks by it says so and how it is mended, and compacting writes it anew', async (t) => {
  const at = await tempDir(t);
  const path = join(at, 'journal.db');
  await makeJournal({ path, records: 3_000, seed: 5 });
  const whole = (await scribe(['export', '--root', at])).stdout;
  for (const index of ['records_by_call', 'records_by_stream', 'records_of_calls']) await tearEnd(path, index);
  const said =
    /SQLite cannot read on in the journal: database disk image is malformed\. scribe verify says .* scribe journal compact, with the daemon stopped, writes the journal anew/;
  for (const words of [
    ['report'],
    ['history', '--failed', '--reverse'],
    ['sql', 'SELECT count(caller) FROM calls'],
    ['sql', '--json', 'SELECT * FROM calls'],
  ])
    await fails([...words, '--root', at], 1, said);
  const { exitStatus, stdout, stderr } = await scribe(['journal', 'compact', '--root', at]);
  assert.equal(exitStatus, 0, stderr);
  assert.match(stdout, /3,0\d\d records, every hash is right$/m);
  assert.ok(stderr.includes(`it was written anew from them, and as it was it is kept at ${path}.corrupt-1.\n`), stderr);
  assert.equal((await scribe(['report', '--root', at])).exitStatus, 0);
  assert.equal((await scribe(['export', '--root', at])).stdout, whole);
});
