/** `scribe verify`: finds a flipped bit, and compares the fold with snapshots and with the daemon's live state. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import { nodeFold, nodeFoldModule } from '../../src/engine/node-fold.ts';
import { foldState } from '../../src/journal/fold.ts';
import { JOURNAL_PRUNED } from '../../src/journal/own-records.ts';
import { hashOfState } from '../../src/journal/snapshots.ts';
import { splitAboveRecords, verifyJournal } from '../../src/journal/verify.ts';
import { tempDir } from '../support/temp-dir.ts';
import { runHistory, targetOfSeed } from '../simulation/history.ts';
import { insertSnapshots, recordsFrom, tamper, withoutTriggers } from '../journal/support.ts';
import { run } from '../support/process.ts';
import { fakeDaemon } from './fake-daemon.ts';
import { jsonLines, recordsOf, type Root, rootWith, scribe, startNode } from './support.ts';
import { runContainer } from '../engine/rig.ts';

const stateAt = (path: string, seq?: number): string => writeState(foldState(path, nodeFold, seq).state);

/** Told once: a history with crashes and without pruning, which takes earlier states away, and its states at two moments. */
const told = (async () => {
  const { records } = await runHistory({ seed: 84, target: targetOfSeed(84) });
  assert.ok(records.every(({ type }) => type !== JOURNAL_PRUNED));
  const seqs = [Math.floor(records.length / 3), Math.floor(records.length / 2)];
  const state = nodeFold.initial();
  const states = new Map<number, string>();
  for (const record of records) {
    nodeFold.evolve(state, record);
    if (seqs.includes(record.seq)) states.set(record.seq, nodeFold.write(state));
  }
  return { records, states };
})();

/** Its journal, with two snapshots in it. */
const simulated = async (t: TestContext, change: (state: string) => string = (state) => state): Promise<Root> => {
  const { records, states } = await told;
  const { evolverVersion } = nodeFold;
  return rootWith(t, records, async (journal) => {
    for (const [seq, state] of states) await journal.writeSnapshot({ seq, evolverVersion, state: change(state) });
  });
};

const verify = (root: Root, ...words: string[]) => scribe(['verify', '--root', root.dir, ...words]);

describe('verify', () => {
  test('a whole journal: all is counted, and snapshots are the same, byte for byte', async (t) => {
    const root = await simulated(t);
    const { exitStatus, stdout, stderr } = await verify(root);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, /journal\.db: [\d,]+ records, \d+ checkpoints?, 2 snapshots, 0 segments of read calls\n/);
    assert.match(stdout, /^every hash is right$/m);
    assert.match(stdout, new RegExp(`has SHA-256 ${hashOfState(stateAt(root.journalPath))}$`, 'm'));
    assert.equal(stdout.match(/^the snapshot at record \d+ is the same, byte for byte$/gm)?.length, 2);
    assert.match(stdout, /the daemon's live state was not compared: there is no daemon at /);
    assert.match(stdout, /^took \d+\.\d s$/m);
  });

  test('a large journal, which is folded while it is checked: said as a small one is, and not folded when it is damaged', async (t) => {
    const dir = await tempDir(t);
    const journalPath = join(dir, 'journal.db');
    await makeJournal({ path: journalPath, records: splitAboveRecords + 1000, seed: 3 });
    const root = { dir, journalPath };
    const { exitStatus, stdout, stderr } = await verify(root);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, /^every hash is right$/m);
    assert.match(stdout, new RegExp(`has SHA-256 ${hashOfState(stateAt(journalPath))}$`, 'm'));
    tamper(journalPath, (db) =>
      withoutTriggers(db, () => db.prepare("UPDATE records SET body = body || ' ' WHERE seq = 20000").run()),
    );
    const damaged = await verify(root);
    assert.equal(damaged.exitStatus, 1);
    assert.match(damaged.stdout, /^record 20,000: its columns do not give its body_hash\.$/m);
    assert.match(damaged.stdout, /^not folded: the journal is not what was written$/m);
  });

  test('a large journal, folded from snapshot to snapshot: each is the same, and of one that differs it is said alone', async (t) => {
    const dir = await tempDir(t);
    const journalPath = join(dir, 'journal.db');
    await makeJournal({ path: journalPath, records: splitAboveRecords + 1000, seed: 4 });
    const { evolverVersion } = nodeFold;
    const snapshots = [5_000, 10_000, 15_000, 20_000].map((seq) => ({
      seq,
      evolverVersion,
      state: stateAt(journalPath, seq),
    }));
    insertSnapshots(journalPath, snapshots);
    // Asked for itself: where a part goes wrong, the command folds all of it once more and says nothing of that.
    const others = [4_999, 5_001, 7_777, 19_998];
    const fold = { module: nodeFoldModule, snapshots: snapshots.map(({ seq }) => seq), others };
    const { folded, headSeq } = await verifyJournal(journalPath, { fold: Promise.resolve(fold) });
    const stops = [...fold.snapshots, ...others, headSeq].sort((a, b) => a - b);
    assert.deepEqual(
      folded?.states,
      stops.map((seq) => ({ seq, stateHash: hashOfState(stateAt(journalPath, seq)) })),
    );

    const root = { dir, journalPath };
    const { exitStatus, stdout, stderr } = await verify(root);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, new RegExp(`has SHA-256 ${hashOfState(stateAt(journalPath))}$`, 'm'));
    assert.equal(stdout.match(/^the snapshot at record [\d,]+ is the same, byte for byte$/gm)?.length, 4);

    tamper(journalPath, (db) => withoutTriggers(db, () => db.exec('DELETE FROM snapshots')));
    const wrong = (state: string): string => state.replace('"podCidr":""', '"podCidr":"10.9.0.0/16"');
    insertSnapshots(
      journalPath,
      snapshots.map((one) => (one.seq === 10_000 ? { ...one, state: wrong(one.state) } : one)),
    );
    const differing = await verify(root);
    assert.equal(differing.exitStatus, 1);
    assert.match(differing.stdout, /^the snapshot at record 10,000 is [0-9a-f]{64}, but the journal folds to /m);
    assert.equal(differing.stdout.match(/is the same, byte for byte$/gm)?.length, 3);
  });

  test('a flipped bit: the first bad record and why, and exit status 1', async (t) => {
    const root = await simulated(t);
    tamper(root.journalPath, (db) => {
      const body = db.prepare<[], string>('SELECT body FROM records WHERE seq = 20').pluck().get() ?? '';
      const flipped = Buffer.from(body);
      flipped[5] = (flipped[5] ?? 0) ^ 1;
      withoutTriggers(db, () => db.prepare('UPDATE records SET body = ? WHERE seq = 20').run(flipped.toString()));
    });
    const { exitStatus, stdout, stderr } = await verify(root);
    assert.equal(exitStatus, 1);
    assert.equal(
      stderr,
      'scribe: The journal is not what was written: record 20: its columns do not give its body_hash.\n',
    );
    assert.match(stdout, /^record 20: its columns do not give its body_hash\.$/m);
    assert.match(stdout, /^not folded: the journal is not what was written$/m);
  });

  test('a journal that is doubted fails until somebody acknowledged it', async (t) => {
    const node = await startNode();
    const what = 'The journal was put back: it ended at record 5 without record 9.';
    await node.engine.observe({ kind: 'JournalDoubted', doubt: { what, head: { file: 'head.lost-1', digest: 'ab' } } });
    const doubted = await verify(await rootWith(t, recordsOf(node)));
    assert.equal(doubted.exitStatus, 1);
    assert.match(doubted.stdout, /^The journal was put back: it ended at record 5 without record 9\.$/m);
    assert.match(doubted.stderr, /doubted until scribe journal acknowledge ends that: The journal was put back/);

    const { outcome } = await node.ask({ method: 'AcknowledgeJournal', reason: 'the disk was replaced' });
    assert.ok(outcome.ok);
    const root = await rootWith(t, recordsOf(node));
    const acknowledged = await verify(root);
    assert.equal(acknowledged.exitStatus, 0, acknowledged.stderr);
    const { stdout } = await scribe(['history', '--root', root.dir]);
    assert.match(stdout, /journal doubted +.*The journal was put back/);
    assert.match(stdout, /AcknowledgeJournal +node +kubelet pid 812 uid 0 .*the disk was replaced/);
  });

  test('a snapshot that is whole but wrong differs from the fold', async (t) => {
    const root = await simulated(t, (text) => text.replace('"podCidr":""', '"podCidr":"10.9.0.0/16"'));
    const { exitStatus, stdout, stderr } = await verify(root);
    assert.equal(exitStatus, 1);
    assert.match(
      stderr,
      /^scribe: The journal does not fold to what is held: the snapshot at record \d+ is [0-9a-f]{64}, /,
    );
    assert.match(stdout, /^every hash is right$/m);
  });

  test('snapshots of other evolvers are nobody to compare with', async (t) => {
    const node = await startNode();
    await runContainer(node);
    const root = await rootWith(t, recordsOf(node), (journal) =>
      journal.writeSnapshot({ seq: 3, evolverVersion: nodeFold.evolverVersion + 1, state: '{}' }),
    );
    const { exitStatus, stdout } = await verify(root);
    assert.equal(exitStatus, 0);
    assert.doesNotMatch(stdout, /the snapshot at record/);
  });

  test('JSON is one object with everything', async (t) => {
    const root = await simulated(t);
    const { stdout } = await verify(root, '--json');
    const [report] = jsonLines<{
      ok: boolean;
      headSeq: number;
      fold: { seq: number; stateHash: string; compared: { who: string; isSame: boolean }[] };
    }>(stdout);
    assert.equal(report?.ok, true);
    assert.equal(report.fold.seq, report.headSeq);
    assert.equal(report.fold.stateHash, hashOfState(stateAt(root.journalPath)));
    assert.deepEqual(
      report.fold.compared.map(({ who, isSame }) => [who, isSame]),
      [
        ['snapshot', true],
        ['snapshot', true],
      ],
    );
  });

  test('on a terminal it says how far it is, and takes that away again', async (t) => {
    const said = async (records: number): Promise<string> => {
      const root = await rootWith(t, recordsFrom(1, records));
      const terminal = { columns: 80, rows: 24 };
      const { exitStatus, stderr } = await scribe(['verify', '--root', root.dir], { terminal });
      assert.equal(exitStatus, 0);
      return stderr;
    };
    const stderr = await said(45_000);
    assert.match(stderr, /checking \d+,000 of 45,000 records/);
    // A small one is folded when it was checked.
    assert.match(await said(15_000), /folding [1-9][\d,]* of 15,000 records/);
    assert.ok(stderr.endsWith('\r\u001b[2K'), JSON.stringify(stderr.slice(-40)));
  });

  test('a directory without a journal, and a file that is none', async (t) => {
    const none = await scribe(['verify', '--root', '/nowhere']);
    assert.equal(none.exitStatus, 1);
    const root = await rootWith(t, recordsOf(await startNode()));
    await run([
      'sh',
      '-c',
      `echo garbage > ${root.journalPath}; rm -f ${root.journalPath}-wal ${root.journalPath}-shm`,
    ]);
    const garbage = await verify(root);
    assert.equal(garbage.exitStatus, 1);
    assert.match(garbage.stderr, /The journal is not what was written: .*cannot be read/);
  });
});

describe("verify and the daemon's live state", () => {
  const hashAt = ({ journalPath }: Root, seq: number): string => hashOfState(stateAt(journalPath, seq));

  test('the same state, at a record from before the newest, is the same, byte for byte', async (t) => {
    const root = await simulated(t);
    const seq = 30;
    const { socketPath } = await fakeDaemon(t, {
      state: () => ({ seq: String(seq), stateHash: hashAt(root, seq), rootDir: root.dir }),
    });
    const { exitStatus, stdout, stderr } = await verify(root, '--socket', socketPath);
    assert.equal(exitStatus, 0, stderr);
    assert.match(stdout, /^the daemon's live state at record 30 is the same, byte for byte$/m);
  });

  test('another state is asked for once more, and then is a failure', async (t) => {
    const root = await simulated(t);
    let asked = 0;
    const { socketPath } = await fakeDaemon(t, {
      state() {
        asked += 1;
        return { seq: '30', stateHash: hashAt(root, 29), rootDir: root.dir };
      },
    });
    const { exitStatus, stderr } = await verify(root, '--socket', socketPath);
    assert.equal(exitStatus, 1);
    assert.match(stderr, /does not fold to what is held: the daemon's live state at record 30 is /);
    assert.equal(asked, 2);
  });

  test('C14: a state that is decided from, and is another than what is shown, is a failure', async (t) => {
    const root = await simulated(t);
    const stateHash = hashAt(root, 30);
    const { socketPath } = await fakeDaemon(t, {
      state: () => ({ seq: '30', stateHash, decidedFromHash: hashAt(root, 29), rootDir: root.dir }),
    });
    const { exitStatus, stderr } = await verify(root, '--socket', socketPath);
    assert.equal(exitStatus, 1);
    assert.match(stderr, /does not fold to what is held: the state that the daemon decides from at record 30 is /);
  });

  test('a difference that is gone when it is looked at again was none', async (t) => {
    const root = await simulated(t);
    let asked = 0;
    const { socketPath } = await fakeDaemon(t, {
      state() {
        asked += 1;
        return { seq: '30', stateHash: hashAt(root, asked === 1 ? 29 : 30), rootDir: root.dir };
      },
    });
    assert.equal((await verify(root, '--socket', socketPath)).exitStatus, 0);
  });

  test("another root's daemon is not compared", async (t) => {
    const root = await simulated(t);
    const { socketPath } = await fakeDaemon(t, {
      state: () => ({ seq: '1', stateHash: 'ff', rootDir: '/elsewhere' }),
    });
    const { exitStatus, stdout } = await verify(root, '--socket', socketPath);
    assert.equal(exitStatus, 0);
    assert.match(stdout, /was not compared: the daemon at .* is that of \/elsewhere/);
  });

  test('a daemon that does not know the question is not compared', async (t) => {
    const root = await simulated(t);
    const { socketPath } = await fakeDaemon(t, {});
    const { exitStatus, stdout } = await verify(root, '--socket', socketPath);
    assert.equal(exitStatus, 0);
    assert.match(stdout, /was not compared: what answers at .* is not scribe, or an older one/);
  });
});
