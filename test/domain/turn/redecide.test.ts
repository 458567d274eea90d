/** C13: what a journal says was decided is decided again, and every difference is told, past the first one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Event, Input, Sequenced } from '../../../src/domain/model/records.ts';
import { copyState } from '../../../src/domain/model/state.ts';
import { decide } from '../../../src/domain/turn/decide.ts';
import { type Difference, differencesOf } from '../../../src/domain/turn/differences.ts';
import { redecide } from '../../../src/domain/turn/redecide.ts';
import { writeState } from '../../../src/domain/turn/snapshot.ts';
import { fromJournalRecord } from '../../../src/engine/codec.ts';
import { tell } from '../../cli/story.ts';

const story = tell().then(({ records }) => records.flatMap((record) => fromJournalRecord(record) ?? []));

/** Today's deciders, but for what `change` makes of the events of some inputs. */
const decidingBut =
  (
    change: (input: Sequenced<Input>, events: readonly Sequenced<Event>[]) => readonly Sequenced<Event>[],
  ): typeof decide =>
  (state, input) =>
    change(input, decide(state, input));

const differencesBy = async (decider: typeof decide): Promise<Difference[]> =>
  [...redecide(await story, { decide: decider })].flatMap(differencesOf);

test('C13: the same deciders decide the same, and the state is that of the records', async () => {
  const records = await story;
  const all = [...redecide(records)].filter(({ isSame }) => !isSame);
  assert.deepEqual(all, []);
});

test('C13: every decision that differs is told, and none that does not: what was recorded goes on', async () => {
  const stops = (input: Sequenced<Input>): boolean => input.type === 'task.exited';
  const differences = await differencesBy(decidingBut((input, events) => (stops(input) ? [] : events)));
  const exits = (await story).filter(({ type }) => type === 'task.exited');
  assert.deepEqual(
    [...new Set(differences.map(({ cause }) => cause.seq))],
    exits.map(({ seq }) => seq),
  );
  assert.deepEqual([...new Set(differences.map(({ kind }) => kind))], ['missing']);
});

test('C13: a decider that throws is a difference, and leaves nothing in the state', async () => {
  const records = await story;
  let before = '';
  const throwing: typeof decide = (state, input) => {
    if (input.type === 'task.exited') {
      decide(state, input);
      throw new Error('this was planted');
    }
    return decide(state, input);
  };
  const whole = [...redecide(records)].map(({ state }) => state).at(-1);
  assert.ok(whole !== undefined);
  before = writeState(whole);
  let after = '';
  const differences: Difference[] = [];
  for (const redecision of redecide(records, { decide: throwing })) {
    differences.push(...differencesOf(redecision));
    after = writeState(copyState(redecision.state));
  }
  assert.equal(after, before);
  assert.ok(differences.length > 0);
  for (const { kind, actual, decider } of differences) {
    assert.deepEqual([kind, decider], ['threw', 'task.exited']);
    assert.match(String(actual), /this was planted/);
  }
});

test('C13: one event more is extra, and those behind it are not different', async () => {
  const twice = decidingBut((input, events) => {
    const [first, ...rest] = events;
    if (input.type !== 'call.received' || first?.type !== 'sandbox.requested') return events;
    return [{ ...first, type: 'sandbox.claimed', body: {} }, first, ...rest];
  });
  const differences = await differencesBy(twice);
  assert.ok(differences.length > 1);
  for (const { kind, type, expected } of differences) {
    assert.deepEqual([kind, type, expected], ['extra', 'sandbox.claimed', null]);
  }
});
