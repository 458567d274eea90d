/** Rounds in the background: often while somebody asks, seldom while nobody does. With a clock of the test's own. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { ASKED_FOR_MS, createRounds, OFTEN_MS, SELDOM_MS } from '../../../src/adapters/stats/rounds.ts';

const countRounds = (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let nowMs = 0;
  let rounds = 0;
  const { asked, close } = createRounds(
    () => (rounds += 1),
    () => nowMs,
  );
  /** How many rounds there are in so much time, of which the clock knows before its timers are due. */
  const roundsIn = (passingMs: number): number => {
    const before = rounds;
    for (let passed = 0; passed < passingMs; passed += 1_000) {
      nowMs += 1_000;
      t.mock.timers.tick(1_000);
    }
    return rounds - before;
  };
  return { asked, close, roundsIn };
};

it('looks once soon, and then every five minutes, as long as nobody asks', (t) => {
  const { roundsIn, close } = countRounds(t);
  assert.equal(roundsIn(OFTEN_MS), 1);
  assert.equal(roundsIn(SELDOM_MS - 1_000), 0);
  assert.equal(roundsIn(1_000), 1);
  close();
  assert.equal(roundsIn(2 * SELDOM_MS), 0);
});

it('looks at once for who asks after a long time, and every ten seconds while somebody goes on asking', (t) => {
  const { asked, roundsIn } = countRounds(t);
  roundsIn(OFTEN_MS + SELDOM_MS / 2);
  asked();
  assert.equal(roundsIn(1_000), 1);
  for (let minute = 0; minute < 5; minute += 1) {
    asked();
    assert.equal(roundsIn(60_000), 6);
  }
});

it('goes back to looking seldom when nobody asks any more', (t) => {
  const { asked, roundsIn } = countRounds(t);
  asked();
  roundsIn(ASKED_FOR_MS + OFTEN_MS);
  assert.equal(roundsIn(SELDOM_MS), 1);
});
