/**
 * Journals that are cut at an arbitrary record in the middle of everything: the daemon that starts on what is left serves,
 * answers every call, loses nothing again, and lets everything be removed. Runs behind. Never repeated: a seed that fails is a finding.
 * SCRIBE_SIM_SEED and SCRIBE_SIM_CUTS choose others.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCut } from './cut.ts';
import { seedOfSources } from './source-seed.ts';

const CUTS = Number(process.env['SCRIBE_SIM_CUTS'] ?? 200);
const SEED = Number(process.env['SCRIBE_SIM_SEED'] ?? (await seedOfSources()));
/**
 * A container that was being removed before it was made, and one that was being undone: their pods could not be removed. And
 * one that was asked for by itself, of a pod that was being restored.
 */
const FOUND = [1107, 1233, 21_170];

test(`C19 C20: ${CUTS} cut journals from seed ${SEED} lead to a daemon that goes on`, async (t) => {
  let [lost, strays, answers] = [0, 0, 0];
  for (const seed of [...FOUND, ...Array.from({ length: CUTS }, (_, index) => SEED + index)]) {
    const result = await runCut(seed).catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    });
    lost += result.lost;
    strays += result.strays;
    answers += result.answers;
  }
  t.diagnostic(`${lost} records were lost, ${strays} strays cleared, ${answers} calls answered`);
  // Else the cuts are where nothing happens.
  assert.ok(lost > 10 * CUTS && strays > CUTS / 2);
});
