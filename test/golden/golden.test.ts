/**
 * C13: golden journals of every version are folded and decided again, and the requests of their effects (OCI specs, CNI
 * arguments, mounts) are made again: all as NAME.expected.json says. When this fails, a decision changed (gate it by the
 * rules of the journal, or accept it with a reason), a request did (look at it, then accept it), or a body lost its meaning
 * (upcast it). `node scripts/make-golden.ts --accept NAME` writes down what is decided and asked for today.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { evolve } from '../../src/domain/turn/evolve.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import type { RECORD_VERSION, RecordType } from '../../src/domain/model/records.ts';
import { DECISION_RULES } from '../../src/domain/model/rules.ts';
import { callMethods } from '../../src/domain/call/catalogue.ts';
import { initialState } from '../../src/domain/model/state.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { readGolden } from '../../src/cli/replay/golden-text.ts';
import { redecided } from '../support/redecided.ts';
import { expectationOf, readExpectation, sequencedIn } from './expectation.ts';

const versions = (await readdir(import.meta.dirname)).filter((name) => /^v\d+$/.test(name));
const v1 = join(import.meta.dirname, 'v1');

const differencesIn = (records: ReturnType<typeof readGolden>): string[] =>
  expectationOf(records.flatMap((record) => fromJournalRecord(record) ?? [])).differences.map((difference) =>
    difference.replace(/ \d+/, ''),
  );

for (const version of versions) {
  const dir = join(import.meta.dirname, version);
  for (const name of (await readdir(dir)).filter((file) => file.endsWith('.jsonl'))) {
    test(`C13: ${version}/${name} folds, is decided again the same, and asks for the same`, async () => {
      const path = join(dir, name);
      const sequenced = sequencedIn(await readFile(path, 'utf8'));
      const expected = await readExpectation(path);
      assert.deepEqual(expectationOf(sequenced), expected);
      assert.ok(expected.decisions > 0 && expected.requests.length > 0);
      const { state } = redecided(sequenced);
      const folded = initialState();
      for (const record of sequenced) evolve(folded, record);
      assert.equal(writeState(folded), writeState(state));
    });
  }
}

test('C13: another decision than the recorded one is found', async () => {
  const records = readGolden(await readFile(join(v1, 'history-12.jsonl'), 'utf8'));
  const planted = records.map((record) =>
    record.type === 'sandbox.ready' ? { ...record, body: '{"claimed":"maybe"}' } : record,
  );
  assert.deepEqual([...new Set(differencesIn(planted))], ['different sandbox.ready body.claimed']);
});

test('C13: another OCI spec than the recorded one is found, also in journals that have no digests', async () => {
  for (const name of ['history-12.jsonl', 'nri-plugins.jsonl']) {
    const path = join(v1, name);
    const records = readGolden(await readFile(path, 'utf8'));
    // As if every spec were built with one capability less.
    const planted = records.map((record) => ({ ...record, body: record.body.replace('"CAP_CHOWN",', '') }));
    const { requests } = expectationOf(planted.flatMap((record) => fromJournalRecord(record) ?? []));
    const expected = (await readExpectation(path)).requests;
    assert.equal(requests.length, expected.length);
    const kinds = requests
      .filter((request, index) => request !== expected[index])
      .map((request) => request.split(' ')[1]);
    assert.ok(kinds.includes('PrepareContainer'), `${name}: ${kinds.join(' ')}`);
  }
});

/** Every type with its newest version: the compiler says which is missing. */
const TYPES = {
  'call.completed': 1,
  'call.detached': 1,
  'call.joined': 1,
  'call.received': 1,
  'checkpoint.written': 1,
  'container.adjusted': 1,
  'container.claimed': 1,
  'container.created': 1,
  'container.exited': 1,
  'container.failed': 1,
  'container.lost': 1,
  'container.removed': 1,
  'container.removing': 1,
  'container.requested': 1,
  'container.started': 1,
  'container.starting': 1,
  'container.stopping': 1,
  'container.updated': 1,
  'content.collected': 1,
  'content.damaged': 1,
  'daemon.started': 1,
  'daemon.stopped': 1,
  'disk.filled': 1,
  'disk.freed': 1,
  'effect.ended': 1,
  'effects.requested': 1,
  'image.pulled': 1,
  'image.removed': 1,
  'image.removing': 1,
  'image.untagged': 1,
  'journal.acknowledged': 1,
  'journal.doubted': 1,
  'logkeeper.ended': 1,
  'logkeeper.started': 1,
  'network.configured': 1,
  'node.configured': 1,
  'nri.plugin.closed': 1,
  'nri.plugin.registered': 1,
  'sandbox.claimed': 1,
  'sandbox.failed': 1,
  'sandbox.lost': 1,
  'sandbox.ready': 1,
  'sandbox.removed': 1,
  'sandbox.removing': 1,
  'sandbox.requested': 1,
  'sandbox.restoring': 1,
  'sandbox.stopped': 1,
  'sandbox.stopping': 1,
  'sandbox.updated': 1,
  'shim.lost': 1,
  'task.exited': 1,
  'task.oomed': 1,
  'turn.failed': 1,
  'undo.retried': 1,
} as const satisfies Readonly<Record<RecordType, typeof RECORD_VERSION>>;

test('C13: every type of record in every version, every call and all rules but the newest are in a golden journal', async () => {
  const seen = new Set<string>();
  for (const name of (await readdir(v1)).filter((file) => file.endsWith('.jsonl')))
    for (const { type, v, body } of readGolden(await readFile(join(v1, name), 'utf8'))) {
      seen.add(`${type} ${v}`);
      const { request, facts } = JSON.parse(body) as { request?: { method?: string }; facts?: { rules?: number } };
      if (type === 'call.received') seen.add(`call ${request?.method}`);
      if (type === 'daemon.started') seen.add(`rules ${facts?.rules ?? 1}`);
    }
  const versions = Object.entries(TYPES).flatMap(([type, newest]) =>
    Array.from({ length: newest }, (_, version) => `${type} ${version + 1}`),
  );
  // The newest may still be worked on.
  const rules = Array.from({ length: DECISION_RULES - 1 }, (_, older) => `rules ${older + 1}`);
  const wanted = [...versions, ...callMethods.map((method) => `call ${method}`), ...rules];
  assert.deepEqual(
    wanted.filter((one) => !seen.has(one)),
    [],
  );
});
