/** `scribe replay`: decides again what journals say was decided, and shows where that differs. */
import { command, failure, type Values } from './command.ts';
import { counted, grouped } from './format.ts';
import { type Io, write } from './io.ts';
import { configOption, jsonOption, readableJournal, rootOf, rootOption } from './places.ts';
import { createProgress } from './progress.ts';
import { tallyOf, type Tally } from './replay/run.ts';
import { showJson, showTable, type Shown } from './replay/show.ts';
import { openSource, type Source } from './replay/source.ts';

const options = {
  root: rootOption,
  config: configOption,
  json: jsonOption,
} as const;

/** A whole number of records between two looks at the clock. */
const PROGRESS_EVERY_DECISIONS = 256;

const journalsOf = async (operands: readonly string[], values: Values<typeof options>): Promise<readonly string[]> =>
  operands.length > 0 ? operands : [await readableJournal(await rootOf(values))];

const replayOne = async (source: Source, shown: Shown, io: Io): Promise<Tally> => {
  const startedMs = performance.now();
  const progress = createProgress(io.stderr);
  const { name, headSeq } = source;
  let decisions = 0;
  const tally = await tallyOf(source, headSeq, {
    difference: (difference) => {
      progress.clear();
      return shown.difference(name, difference);
    },
    progress({ input: { seq } }) {
      decisions += 1;
      if (decisions % PROGRESS_EVERY_DECISIONS !== 0) return;
      progress.draw(() => [`${name}: deciding again, ${grouped(seq)} of ${counted(headSeq, 'record')}`]);
    },
  });
  progress.clear();
  await shown.tally(source, tally, performance.now() - startedMs);
  return tally;
};

interface Outcome {
  readonly name: string;
  /** What is wrong with it, in words; null: it is decided again as it was. */
  readonly problem: string | null;
}

const replayNamed = async (name: string, shown: Shown, io: Io): Promise<Outcome> => {
  try {
    const source = await openSource(name);
    try {
      const tally = await replayOne(source, shown, io);
      return { name, problem: source.changed() ?? problemOf(tally) };
    } finally {
      source.close();
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    // The others are replayed all the same.
    await write(io.stderr, `scribe: ${error.message}\n`);
    return { name, problem: 'it cannot be replayed' };
  }
};

const problemOf = ({ differing, decisions, journaled, unreadable }: Tally): string | null => {
  if (differing > 0)
    return `${counted(differing, 'decision')} of ${grouped(decisions)} ${differing === 1 ? 'differs' : 'differ'}`;
  if (unreadable.length > 0) return `${counted(unreadable.length, 'record')} cannot be read`;
  if (decisions !== journaled)
    return `${grouped(journaled)} decisions are journaled, and ${grouped(decisions)} were found`;
  return null;
};

export const replay = command({
  name: 'replay',
  summary: 'decide again what journals say was decided, and show what differs',
  description: [
    'Gives every input of a journal (calls, outcomes of effects, exits, starts) to the deciders of this scribe once more, and holds what they decide against what was recorded then: records that are missing today, extra ones, and where one says something else. Requests of effects, with the OCI specs in them, are made again, too, and compared by the digests that the journal has of those that were performed (journals of older versions have none).',
    'Needs no root, no containers and no daemon; performs nothing and changes nothing. JOURNAL is a journal.db, wherever it was copied to (with the -wal file beside it, if there is one), a root directory, or a golden journal (*.jsonl). Without one, that of this node. Each journal is replayed to its end, past whatever differs: what was recorded goes on.',
    'A journal that was pruned is replayed from its oldest snapshot behind what was pruned, or from where the pruning was recorded.',
    'With --json each difference is an object: journal, seq (of the record that differs), decider (what was decided on, in words), expected (what was recorded; null: nothing), actual (what is decided today; null: nothing), path (where in the record they differ; null: as a whole), cause (the record that was decided on: seq, type, stream), kind (missing, extra, different, threw, request), stream and type of the record. An object with the sums of each journal follows.',
  ],
  options,
  operands: { name: '[JOURNAL]...', count: Number.POSITIVE_INFINITY, countMin: 0 },
  exitStatus: '0 when every decision is the one that was recorded, 1 when one differs or a journal could not be read',
  examples: [
    ['scribe replay', "This node's journal."],
    ['scribe replay node7/journal.db node8/journal.db', 'Journals that were copied from elsewhere.'],
    [
      "scribe replay --json node7/journal.db | jq -c 'select(.path != null) | [.seq, .path, .expected, .actual]'",
      'Which fields differ.',
    ],
  ],
  run: async (values, operands, io) => {
    const shown = values.json === true ? showJson(io) : showTable(io);
    const outcomes: Outcome[] = [];
    for (const name of await journalsOf(operands, values)) outcomes.push(await replayNamed(name, shown, io));
    const bad = outcomes.filter(({ problem }) => problem !== null);
    if (bad.length > 0) throw failure(bad.map(({ name, problem }) => `${name}: ${problem}.`).join('\nscribe: '));
    return 0;
  },
});
