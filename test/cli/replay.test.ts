/** `scribe replay`: decides journals again wherever they lie, and shows every difference from what was recorded. */
import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { writeGolden } from '../../src/cli/replay/golden-text.ts';
import type { Difference } from '../../src/domain/turn/differences.ts';
import { INPUT_TYPES } from '../../src/domain/turn/redecide.ts';
import { nodeFold } from '../../src/engine/node-fold.ts';
import { openJournal } from '../../src/journal/open.ts';
import { prunedRecord, readsClosedRecord } from '../../src/journal/own-records.ts';
import { rangesOfSeqs } from '../../src/journal/ranges.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { runHistory, targetOfSeed } from '../simulation/history.ts';
import type { Owner } from '../support/cleanup.ts';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tearEnd } from '../journal/support.ts';
import { startNs, tell } from './story.ts';
import { jsonLines, type Root, rootWith, scribe } from './support.ts';

/** A history with crashes in which nothing is pruned, told once. */
const simulated = runHistory({ seed: 84, target: targetOfSeed(84) });

const inputsOf = (records: readonly JournalRecord[]): number =>
  records.filter(({ type }) => INPUT_TYPES.includes(type)).length;

type Line = Difference & { readonly journal: string; readonly decisions?: number };

const differencesOf = (stdout: string): Line[] =>
  jsonLines<Line>(stdout).filter(({ decisions }) => decisions === undefined);

const goldenWith = async (owner: Owner, records: readonly JournalRecord[]): Promise<string> => {
  const path = join(await tempDir(owner), 'some.jsonl');
  await writeFile(path, writeGolden(records));
  return path;
};

const changed = (
  records: readonly JournalRecord[],
  type: string,
  change: (body: string) => string,
): { readonly seq: number; readonly records: JournalRecord[] } => {
  const seq = records.find((record) => record.type === type)?.seq ?? assert.fail(`there is no ${type}`);
  return {
    seq,
    records: records.map((record) => (record.seq === seq ? { ...record, body: change(record.body) } : record)),
  };
};

describe('replay', () => {
  test('a journal with crashes in it: every decision that is journaled is checked, with the requests of effects', async (t) => {
    const { records } = await simulated;
    const root = await rootWith(t, records);
    const { exitStatus, stdout, stderr } = await scribe(['replay', '--root', root.dir]);
    assert.equal(exitStatus, 0, stderr);
    const inputs = inputsOf(records).toLocaleString('en-US');
    assert.match(stdout, new RegExp(`${inputs} decisions checked of ${inputs} journaled .*: all as recorded\n`));
    const requests = records.filter(({ type, body }) => type === 'effect.ended' && body.includes('"request":'));
    assert.ok(requests.length > 20);
    assert.match(stdout, new RegExp(` and ${requests.length} requests of effects, in `));
  });

  test('what differs is told with its place and its cause, and the rest is checked all the same', async (t) => {
    const { records } = await tell();
    const exit = changed(records, 'container.exited', (body) => body.replace('"exitStatus":0', '"exitStatus":138'));
    const root = await rootWith(t, exit.records);
    const table = await scribe(['replay', root.journalPath]);
    assert.equal(table.exitStatus, 1);
    assert.match(
      table.stdout,
      /^\d+ +container\/\w+ +container\.exited +task\.exited \(\d+\) +body\.exitStatus +138 +0$/m,
    );
    assert.match(table.stdout, /: 1 differs, in 1 place$/m);
    assert.match(table.stderr, /journal\.db: 1 decision of \d+ differs\.\n$/);
    const { stdout } = await scribe(['replay', '--json', root.journalPath]);
    const stream = records[exit.seq - 1]?.stream;
    assert.deepEqual(differencesOf(stdout), [
      {
        journal: root.journalPath,
        seq: exit.seq,
        decider: 'task.exited',
        expected: 138,
        actual: 0,
        path: 'body.exitStatus',
        cause: { seq: exit.seq - 1, type: 'task.exited', stream },
        kind: 'different',
        stream,
        type: 'container.exited',
      },
    ]);
  });

  test('records that are missing or more than there were stand alone, and those behind them are not different', async (t) => {
    const { records } = await tell();
    const dropped = records.find(({ type }) => type === 'sandbox.ready') ?? assert.fail();
    const copied = records.find(({ type }) => type === 'container.created') ?? assert.fail();
    const path = await goldenWith(
      t,
      records.flatMap((record) => {
        if (record === dropped) return [];
        return record === copied ? [record, { ...record, type: 'container.claimed', body: '{}' }] : [record];
      }),
    );
    const { stdout, exitStatus } = await scribe(['replay', '--json', path]);
    assert.equal(exitStatus, 1);
    const [first, ...later] = differencesOf(stdout);
    assert.deepEqual([first?.kind, first?.type, first?.expected], ['extra', 'sandbox.ready', null]);
    const missing = later.find(({ type }) => type === 'container.claimed');
    assert.deepEqual([missing?.kind, missing?.seq, missing?.actual], ['missing', copied.seq, null]);
  });

  test('another request of an effect than the one that was performed', async (t) => {
    const { records } = await simulated;
    const prepared = records.find(({ body }) => body.includes('"kind":"PrepareContainer","request"')) ?? assert.fail();
    const root = await rootWith(
      t,
      records.map((record) =>
        record === prepared ? { ...record, body: record.body.replace(/"request":"\w+"/, '"request":"0123"') } : record,
      ),
    );
    const { stdout, exitStatus } = await scribe(['replay', '--json', root.dir]);
    assert.equal(exitStatus, 1);
    const [only, ...more] = differencesOf(stdout);
    assert.deepEqual(more, []);
    assert.deepEqual([only?.kind, only?.type, only?.seq], ['request', 'effects.requested', prepared.cause]);
    const { request } = only?.actual as { request: { bundle: { spec: { ociVersion: string } } } };
    assert.ok(request.bundle.spec.ociVersion.length > 0);
  });

  test('many journals: one that cannot be read keeps none of the others from being replayed', async (t) => {
    const { records } = await tell();
    const root = await rootWith(t, records);
    const golden = await goldenWith(t, records);
    const broken = join(await tempDir(t), 'broken.db');
    await writeFile(broken, 'SQLite format 3\0 and then nothing');
    const { exitStatus, stdout, stderr } = await scribe(['replay', '/nowhere/at/all', broken, root.dir, golden]);
    assert.equal(exitStatus, 1);
    assert.equal(stdout.match(/: all as recorded$/gm)?.length, 2);
    assert.match(stderr, /There is no journal at \/nowhere\/at\/all/);
    assert.match(stderr, /SQLite cannot read the journal .*broken\.db/);

    const told = await scribe(['replay', '--json', '/nowhere/at/all', root.dir, broken]);
    const [nowhere, whole, damaged] = jsonLines<{ journal: string; failure?: string; differing?: number }>(told.stdout);
    assert.deepEqual(nowhere, { journal: '/nowhere/at/all', failure: 'There is no journal at /nowhere/at/all.' });
    assert.deepEqual([whole?.journal, whole?.differing, whole?.failure], [root.dir, 0, undefined]);
    assert.match(damaged?.failure ?? '', /^SQLite cannot read the journal .*broken\.db/);
  });

  /** Everything about the story's first pod is pruned, as the daemon does it. */
  const pruned = async (owner: Owner, withSnapshot: boolean): Promise<Root & { readonly seqs: readonly number[] }> => {
    const { records, web, nginx } = await tell();
    const gone = new Set([`sandbox/${web}`, `container/${nginx}`]);
    const calls = new Set(records.filter(({ stream }) => gone.has(stream)).map(({ call }) => call));
    const seqs = records
      .filter(({ stream, call }) => gone.has(stream) || (call !== null && calls.has(call)))
      .map(({ seq }) => seq);
    const root = await rootWith(owner, records, async (journal) => {
      const state = nodeFold.initial();
      const snapshotSeq = Math.max(...seqs) + 5;
      for (const record of records.filter(({ seq }) => seq <= snapshotSeq)) nodeFold.evolve(state, record);
      const own = prunedRecord({ reason: 'old enough', seqs: rangesOfSeqs(seqs), segments: [] });
      const where = { atNs: startNs + 60_000_000_000n, monoNs: 1n, boot: 'boot', cause: null, call: null };
      await journal.append([{ ...own, ...where, seq: records.length + 1 }]);
      if (!withSnapshot) return;
      const { evolverVersion } = nodeFold;
      await journal.writeSnapshot({ seq: snapshotSeq, evolverVersion, state: nodeFold.write(state) });
    });
    return { ...root, seqs };
  };

  test('what a newer scribe wrote ends it with the remedy, and is not held against the deciders', async (t) => {
    const { records } = await tell();
    const { seq, type } = records.findLast((record) => record.type === 'container.created') ?? assert.fail();
    const ofLater = await rootWith(
      t,
      records.map((record) => (record.seq === seq ? { ...record, v: 9 } : record)),
    );
    const version = /"version":"([^"]+)"/.exec(records[0]?.body ?? '')?.[1] ?? assert.fail();
    const why = `scribe ${version} wrote it (${type} of version 9, and this one knows version 1): use scribe ${version} or later`;
    const { exitStatus, stdout, stderr } = await scribe(['replay', ofLater.journalPath]);
    assert.equal(exitStatus, 1);
    assert.equal(stderr, `scribe: ${ofLater.journalPath}: record ${seq} cannot be read: ${why}.\n`);
    assert.match(stdout, new RegExp(`\\(records 1 to ${seq - 1}\\): all as recorded`));
    const at = await scribe(['at', String(seq + 1), 'get', 'pods', '--root', ofLater.dir]);
    assert.ok(at.stderr.startsWith(`scribe: What is shown may be wrong, as of record ${seq}: ${why}.\n`), at.stderr);

    const byRules = changed(records, 'daemon.started', (body) => body.replace(/"rules":\d+/, '"rules":99'));
    const { stderr: refused } = await scribe(['replay', await goldenWith(t, byRules.records)]);
    assert.match(
      refused,
      /record 1 cannot be read: scribe .* wrote it \(decided by rules 99, and this one knows up to \d+\)/,
    );
    const root = await rootWith(t, byRules.records);
    assert.match(
      (await scribe(['why', 'web', '--root', root.dir])).stderr,
      /What is shown of this journal may be wrong: /,
    );
  });

  test('a pruned journal: from its snapshot, and what cannot be checked is counted', async (t) => {
    const root = await pruned(t, true);
    const { exitStatus, stdout, stderr } = await scribe(['replay', root.dir]);
    assert.equal(exitStatus, 0, stderr);
    assert.match(
      stdout,
      new RegExp(`begun behind record ${Math.max(...root.seqs) + 5}, from its snapshot: .* decisions? of it cannot be`),
    );
    const [, checked, journaled] = /(\d+) decisions checked of (\d+) journaled/.exec(stdout) ?? [];
    assert.equal(checked, journaled);
    assert.ok(Number(checked) > 10);
    // What was so from the beginning changes at no decision.
    const { stderr: none } = await scribe(['replay', '--break-on', 'node.facts', root.dir]);
    assert.match(none, /no decision is like that/);
    // As where the newest snapshot is at the head.
    const before = await scribe(['replay', '--until', '1', root.dir]);
    assert.equal(before.exitStatus, 0, before.stderr);
    assert.match(
      before.stdout,
      /: begun behind record .*\n\S+: nothing to check: what is replayed ends before record 2\n$/,
    );

    await tearEnd(root.journalPath);
    const torn = await scribe(['replay', root.dir]);
    assert.equal(torn.exitStatus, 1, torn.stdout);
    assert.match(torn.stdout, /: record \d+ cannot be read, so nothing from it on was decided: SQLite cannot read on/);
    assert.match(
      torn.stdout,
      /: begun behind record \d+, from its snapshot: [^]*: \d+ decisions? checked .*: all as recorded$/m,
    );
  });

  test('a pruned journal without a snapshot: from where the pruning was recorded', async (t) => {
    const root = await pruned(t, false);
    const { exitStatus, stdout, stderr } = await scribe(['replay', root.dir]);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, /begun behind record \d+, from folding what is left/);
    const report = join(root.dir, 'crash-1.json');
    const input = { type: 'task.exited', seq: 2, stream: 'node', atNs: '1', monoNs: '1', call: null, cause: null };
    const crash = { scribeCrashReport: 1, version: '1', atNs: '1', what: 'it burns', stack: '', records: [], input };
    await writeFile(report, JSON.stringify({ ...crash, isDecided: false }));
    const crashed = await scribe(['replay', report]);
    assert.equal(crashed.exitStatus, 1);
    assert.match(
      crashed.stderr,
      /^scribe: What \S+journal\.db had when the daemon ended is pruned: .* from record \d+ on\. /,
    );
  });

  test('a pruned journal without a snapshot whose end is damaged: as far as what was pruned is known', async (t) => {
    const known = await pruned(t, false);
    const { journal } = openJournal({ path: known.journalPath });
    const first = journal.head().seq + 1;
    const where = { monoNs: 1n, boot: 'boot', cause: null, call: null };
    const closed = { segment: 0, count: 1, dropped: 0, fromNs: 1n, toNs: 2n, root: new Uint8Array(32) };
    await journal.append(
      Array.from({ length: 60 }, (_, index) => ({
        ...readsClosedRecord({ ...closed, segment: index }),
        ...where,
        atNs: startNs + 70_000_000_000n,
        seq: first + index,
      })),
    );
    await journal.close();
    await tearEnd(known.journalPath);
    const torn = await scribe(['replay', known.dir]);
    assert.equal(torn.exitStatus, 1, torn.stdout);
    assert.match(torn.stdout, /: record \d+ cannot be read, so nothing from it on was decided: SQLite cannot read on/);
    assert.match(
      torn.stdout,
      /: begun behind record \d+, from folding what is left: [^]*: \d+ decisions? checked .*: all as recorded$/m,
    );

    // The pruning is what was torn away.
    const unknown = await pruned(t, false);
    await tearEnd(unknown.journalPath);
    const { exitStatus, stderr } = await scribe(['replay', unknown.dir]);
    assert.equal(exitStatus, 1);
    assert.match(stderr, /^scribe: There is nowhere to begin: a part of the journal is pruned, .* scribe verify says/m);
  });

  test('a journal where nothing can be written, with and without its log, leaves nothing there', async (t) => {
    const { records } = await tell();
    const root = await rootWith(t, records);
    const script = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; bin/scribe replay "$1"; ls "$1"';
    for (const missing of ['journal.db-shm', 'journal.db-wal']) {
      await rm(join(root.dir, missing));
      const stdout = await runOk(['unshare', '--mount', 'sh', '-ec', script, 'sh', root.dir]);
      assert.match(stdout, /: all as recorded$/m);
      assert.doesNotMatch(stdout, new RegExp(missing));
    }
  });
});
