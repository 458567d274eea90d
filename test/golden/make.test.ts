/** C13: journals and crash reports from nodes become golden journals: shrunk, redacted, and decided as they were. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { type Golden, type GoldenWish, makeGolden } from '../../scripts/lib/golden/make.ts';
import { readGolden, writeGolden } from '../../src/cli/replay/golden-text.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type Expectation, expectationOf, sequencedIn } from './expectation.ts';

const repository = join(import.meta.dirname, '../..');
const ANYTHING_WRONG: GoldenWish = { things: [], around: [], until: null, level: 'metadata' };

const expected = ({ text }: Golden): Expectation => expectationOf(sequencedIn(text));
const recordsIn = (name: string): Promise<JournalRecord[]> =>
  readFile(join(import.meta.dirname, 'v1', name), 'utf8').then(readGolden);

test('C13: of a journal that shows a mistake: what is about it, and that today differs', async () => {
  const golden = await makeGolden(join(repository, 'docs/debugging-a-crash/journal.jsonl'), ANYTHING_WRONG);
  assert.deepEqual(expected(golden).differences, ['different 38 container.exited body.reason']);
});

test('C13: of the report of a crash: what could not be decided, as it is decided today', async () => {
  const golden = await makeGolden(join(repository, 'docs/debugging-a-crash/crash.json'), ANYTHING_WRONG);
  assert.ok(golden.records < 10 && golden.of > 40, `${golden.records} records of ${golden.of}`);
  assert.deepEqual(expected(golden).differences, []);
  assert.deepEqual(
    readGolden(golden.text)
      .slice(-3)
      .map(({ type }) => type),
    ['call.received', 'sandbox.requested', 'effects.requested'],
  );
});

test('C13: of each pod of a history with crashes, with what its decisions depend on, and nothing else', async () => {
  const name = 'history-rules2-138.jsonl';
  const all = await recordsIn(name);
  const pods = all.filter(({ type }) => type === 'sandbox.requested').map(({ stream }) => stream);
  const sizes: number[] = [];
  for (const pod of pods) {
    const golden = await makeGolden(join(import.meta.dirname, 'v1', name), { ...ANYTHING_WRONG, things: [pod] });
    const { differences } = expected(golden);
    assert.deepEqual(differences, [], pod);
    assert.ok(golden.things.includes(pod));
    sizes.push(golden.records);
  }
  assert.ok(Math.min(...sizes) < all.length / 2);
});

test('C13: nothing that a client chose freely is in it, and other requests are still other ones', async (t) => {
  const canaries = {
    labels: { 'canary.example/label': 'canary-1' },
    annotations: { 'canary.example/annotation': 'canary 2' },
    hostname: 'canary-3',
    args: ['--token=canary-4'],
    envs: [{ key: 'CANARY_5', token: 'secret:canary6' }],
    workingDir: '/canary7/data',
    mounts: [{ containerPath: '/canary8', hostPath: '/var/canary9' }],
  };
  const planted = (await recordsIn('history-rules6-24.jsonl')).map((record) => {
    const body = JSON.parse(record.body) as { request?: { config?: object }; config?: object };
    const holder = body.request ?? body;
    if (holder.config !== undefined) Object.assign(holder.config, canaries);
    return { ...record, body: JSON.stringify(body) };
  });
  const journal = join(await tempDir(t), 'planted.jsonl');
  await writeFile(journal, writeGolden(planted));
  const pod = planted.find(({ type }) => type === 'container.created')?.cause;
  const golden = await makeGolden(journal, { ...ANYTHING_WRONG, around: [pod ?? 0] });
  assert.match(await readFile(journal, 'utf8'), /canary9/);
  assert.doesNotMatch(golden.text, /canary/i);
  // The daemon of this history never saw what was planted: its requests had none of it.
  assert.ok(expected(golden).differences.some((difference) => difference.startsWith('request ')));
});

test('a journal without a mistake has to be told what it shall be about, and of things that were there', async () => {
  const journal = join(import.meta.dirname, 'v1/history-12.jsonl');
  await assert.rejects(makeGolden(journal, ANYTHING_WRONG), /say with --thing or --around/);
  await assert.rejects(makeGolden(journal, { ...ANYTHING_WRONG, things: ['pod/nobody'] }), /There is no pod\/nobody/);
  await assert.rejects(makeGolden(journal, { ...ANYTHING_WRONG, around: [999_999] }), /There is no record 999999/);
});
