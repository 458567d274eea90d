/** Rounds in the background: while somebody asks, and none while nobody does. With a clock of the test's own. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { ASKED_FOR_MS, createRounds, EVERY_MS } from '../../../src/adapters/stats/rounds.ts';

const countRounds = (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  let rounds = 0;
  let rests = 0;
  const { asked, isAsked, close } = createRounds({
    round: () => (rounds += 1),
    rest: () => (rests += 1),
    nowMs: () => nowMs,
  });
  /** How many rounds there are in so much time, of which the clock knows before its timers are due. */
  const roundsIn = (passingMs: number): number => {
    const before = rounds;
    for (let passed = 0; passed < passingMs; passed += 1_000) {
      nowMs += 1_000;
      t.mock.timers.tick(1_000);
    }
    return rounds - before;
  };
  return { asked, isAsked, close, roundsIn, rounds: () => rounds, rests: () => rests };
};

it('does not look as long as nobody asks', (t) => {
  const { roundsIn, isAsked } = countRounds(t);
  assert.equal(roundsIn(3_600_000), 0);
  assert.equal(isAsked(), false);
});

it('looks at once for who asks after a rest, and every ten seconds while somebody goes on asking', (t) => {
  const { asked, isAsked, roundsIn, rounds, rests, close } = countRounds(t);
  asked();
  assert.equal(rounds(), 1);
  assert.equal(isAsked(), true);
  for (let minute = 0; minute < 5; minute += 1) {
    asked();
    assert.equal(roundsIn(60_000), 6);
  }
  assert.equal(rests(), 0);
  close();
  assert.equal(roundsIn(60_000), 0);
});

it('rests when nobody asks any more, until somebody does', (t) => {
  const { asked, isAsked, roundsIn, rounds, rests } = countRounds(t);
  asked();
  assert.equal(roundsIn(ASKED_FOR_MS + EVERY_MS), ASKED_FOR_MS / EVERY_MS - 1);
  assert.equal(rests(), 1);
  assert.equal(isAsked(), false);
  assert.equal(roundsIn(3_600_000), 0);
  asked();
  assert.equal(rounds(), ASKED_FOR_MS / EVERY_MS + 1);
  assert.equal(rests(), 1);
});
