/**
 * C13: what replay is for: mistakes in deciders are found, each at the first decision that it changes. The mistakes are
 * made mechanically, and whether they change a decision is told without replay.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { readGolden } from '../../src/cli/replay/golden-text.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import { copyState, initialState } from '../../src/domain/model/state.ts';
import { INPUT_TYPES, isInput } from '../../src/domain/turn/redecide.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { allMutants, domainWith, type Mutant, type MutatedDomain } from './mutants.ts';

const WANTED = 20;
/** Not every mistake shows in these journals. */
const TRIED_MAX = 80;

const recordsOf = async (name: string): Promise<Sequenced[]> =>
  readGolden(await readFile(join(import.meta.dirname, 'v1', name), 'utf8')).flatMap(
    (record) => fromJournalRecord(record) ?? [],
  );

/** What is decided on an input in its state at that time, in words that can be compared; thrown errors are all alike. */
const saidBy = (decider: MutatedDomain['decide'], state: ReturnType<typeof initialState>, input: Sequenced): string => {
  try {
    return wordsOf(isInput(input) ? decider(copyState(state), input) : []);
  } catch {
    return 'threw';
  }
};

/** Names in one order, whoever wrote them. */
const inOrder = (_name: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;

const wordsOf = (events: readonly Sequenced[]): string =>
  JSON.stringify(
    events.map(({ seq, type, stream, cause, call, body }) => [seq, type, stream, cause, call, body]),
    inOrder,
  );

/** seq of the first input on which something else is decided than was recorded; found by folding and comparing texts. */
const firstChanged = ({ decide, evolve }: MutatedDomain, records: readonly Sequenced[]): number | null => {
  const state = initialState();
  for (const [index, record] of records.entries()) {
    if (isInput(record)) {
      const end = records.findIndex(({ type }, later) => later > index && INPUT_TYPES.includes(type));
      const recorded = records.slice(index + 1, end < 0 ? records.length : end);
      if (saidBy(decide, state, record) !== wordsOf(recorded)) return record.seq;
    }
    evolve(state, record);
  }
  return null;
};

/** By a mistake that shows in folding too no journal is read at all, which nobody misses: that is no decider's. */
const folds = ({ evolve }: MutatedDomain, records: readonly Sequenced[]): boolean => {
  const state = initialState();
  try {
    for (const record of records) evolve(state, record);
    return true;
  } catch {
    return false;
  }
};

/** Spread over all files. */
const spread = (all: readonly Mutant[]): Mutant[] =>
  Array.from({ length: TRIED_MAX }, (_, index) => all[Math.floor((index * all.length) / TRIED_MAX)]).filter(
    (mutant) => mutant !== undefined,
  );

test(`C13: each of ${WANTED} mechanically mutated deciders is caught at its first differing decision`, async (t) => {
  const records = await recordsOf('history-rules3-112.jsonl');
  const caught: string[] = [];
  for (const mutant of spread(allMutants())) {
    if (caught.length === WANTED) break;
    const domain = await domainWith(mutant);
    if (!folds(domain, records)) continue;
    const changed = firstChanged(domain, records);
    if (changed === null) continue;
    const what = `${relative(process.cwd(), mutant.file)} at ${mutant.at}:${mutant.from}is${mutant.to}`;
    const found = domain.redecide(records).find(({ isSame }) => !isSame);
    const [first] = found === undefined ? [] : domain.differencesOf(found);
    assert.equal(first?.cause.seq, changed, what);
    caught.push(`${what}: ${first.kind} at record ${changed}`);
  }
  t.diagnostic(caught.join('\n'));
  assert.equal(caught.length, WANTED);
});
