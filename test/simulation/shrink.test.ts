/** A finding is told as a history that can be read: few records, and in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Finding } from './finding.ts';
import { runHistory, targetOfSeed } from './history.ts';
import { MORE_PLANTS } from './plants-more.ts';
import { report } from './report.ts';
import { shrink } from './shrink.ts';

const SEEDS = 60;
const RECORDS_MAX = 80;

test('a finding is shrunk to a history that can be read', async (t) => {
  const plant = MORE_PLANTS.find(({ name }) => name === 'an undo that is not tried again');
  assert.ok(plant !== undefined);
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const shrunk = await shrink({ seed, target: plant.target ?? targetOfSeed(seed), plant });
    if (shrunk === null || shrunk.finding.records.length >= RECORDS_MAX) continue;
    const text = report(shrunk);
    t.diagnostic(text);
    assert.match(text, /a client calls \w+/);
    assert.match(text, /to do: /);
    assert.match(text, /failed/);
    return;
  }
  assert.fail(`no finding of ${SEEDS} seeds was shrunk to less than ${RECORDS_MAX} records`);
});

test('a finding about a call tells what that call was about, and leaves out what it was not', async () => {
  const plant = MORE_PLANTS.find(({ name }) => name === 'a call that joined another and has no answer');
  assert.ok(plant !== undefined);
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const options = { seed, target: plant.target ?? targetOfSeed(seed), plant };
    const finding = await runHistory(options).catch((error: unknown) => error);
    if (!(finding instanceof Finding) || !/of record \d+ has no answer/.test(finding.message)) continue;
    const [, call] = /of record (\d+)/.exec(finding.message) ?? [];
    const text = report({ options, finding, runs: 1 });
    assert.match(text, new RegExp(`call ${call} +a client calls`));
    const [, shown] = /of which (\d+) matter/.exec(text) ?? [];
    assert.ok(Number(shown) < finding.records.length / 2, text);
    return;
  }
  assert.fail(`${SEEDS} seeds found no call without an answer`);
});
