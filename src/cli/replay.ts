/** `scribe replay`: decides again what journals say was decided, and shows where that differs. */
import { dirname, resolve } from 'node:path';
import { bare } from '../domain/values/sentence.ts';
import { command, failure, misuse, type Values } from './command.ts';
import { withRemedy } from './damage.ts';
import { counted, grouped } from './format.ts';
import { type Io, write } from './io.ts';
import { configOption, jsonOption, readableJournal, readsInRoot, rootOf, rootOption } from './places.ts';
import { nothingBy } from './past/state.ts';
import { createProgress } from './progress.ts';
import { breakOn } from './replay/break-on.ts';
import { look } from './replay/look.ts';
import { tallyOf, type Tally } from './replay/run.ts';
import { showJson, showTable, type Shown } from './replay/show.ts';
import { isCrashReport, openSource } from './replay/open-source.ts';
import type { Source } from './replay/source.ts';
import { MOMENT_FORMS, type Moment, parseMoment, seqAt } from './time-argument.ts';

const options = {
  root: rootOption,
  config: configOption,
  until: { value: 'MOMENT', about: `Only what was decided at this moment or earlier. ${MOMENT_FORMS}` },
  'break-on': {
    value: 'WHAT',
    about:
      'Stops at the first decision with a record of this type (container.exited), about this method or effect (StopContainer, CreateTask), or that changes this field (container/4f2a.phase, pod/web.ips, node.network), and shows it; with --step goes there at first, and with each continue.',
  },
  step: {
    about:
      'Goes through one journal decision by decision, as lines on standard input say: next, back, continue, go RECORD, state THING, diff, why, records, help, quit.',
  },
  inspect: {
    about:
      "Waits for Node's debugger and stops there in front of the decision that --break-on names, or of the first one that differs.",
  },
  json: jsonOption,
} as const;

/** A whole number of records between two looks at the clock. */
const PROGRESS_EVERY_DECISIONS = 256;

/** What would not be heeded is refused. */
const checkHow = ({ step, inspect, json }: Values<typeof options>): void => {
  if (step === true && inspect === true) throw misuse('--step and --inspect: give one of them.');
  const byHand = step === true ? '--step' : inspect === true ? '--inspect' : null;
  if (byHand !== null && json === true)
    throw misuse(`${byHand} and --json: give one of them; --break-on WHAT --json shows a decision as an object.`);
};

const journalsOf = async (operands: readonly string[], values: Values<typeof options>): Promise<readonly string[]> =>
  operands.length > 0 ? operands : [await readableJournal(await rootOf(values))];

const replayOne = async (source: Source, toSeq: number, shown: Shown, io: Io): Promise<Tally> => {
  const startedMs = performance.now();
  const progress = createProgress(io.stderr);
  const { name } = source;
  let decisions = 0;
  const tally = await tallyOf(source, toSeq, {
    difference: (difference) => {
      progress.clear();
      return shown.difference(name, difference);
    },
    progress({ input: { seq } }) {
      decisions += 1;
      if (decisions % PROGRESS_EVERY_DECISIONS !== 0) return;
      progress.draw(() => [`${name}: deciding again, ${grouped(seq)} of ${counted(toSeq, 'record')}`]);
    },
  });
  progress.clear();
  await shown.tally(source, tally, performance.now() - startedMs);
  return tally;
};

/**
 * Nothing is read that is later; with records from another machine, whose clock may be ahead, too. Throws where nothing was
 * recorded by then: that nothing differs would say more than is known.
 */
const lastSeq = ({ headSeq, seqAtTime, record }: Source, until: Moment | null): number => {
  if (until === null) return headSeq;
  const last = seqAt({ headSeq: () => headSeq, seqAtTime }, until);
  if (last === 0 && headSeq > 0) throw nothingBy(record(1));
  return last;
};

interface Outcome {
  readonly name: string;
  /** What is wrong with it, in words; null: it is decided again as it was. */
  readonly problem: string | null;
  /** null: it could not be replayed. */
  readonly tally: Tally | null;
}

const replayNamed = async (name: string, until: Moment | null, shown: Shown, io: Io): Promise<Outcome> => {
  try {
    const source = await openSource(name);
    try {
      const tally = await replayOne(source, lastSeq(source, until), shown, io);
      return { name, problem: source.changed() ?? problemOf(tally), tally };
    } finally {
      source.close();
    }
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    // The others are replayed all the same.
    const why = withRemedy(error.message);
    await shown.failed(name, why);
    await write(io.stderr, `scribe: ${why}\n`);
    return { name, problem: 'it cannot be replayed', tally: null };
  }
};

const problemOf = ({ differing, decisions, journaled, unreadable }: Tally): string | null => {
  if (differing > 0)
    return `${counted(differing, 'decision')} of ${grouped(decisions)} ${differing === 1 ? 'differs' : 'differ'}`;
  const end = unreadable.find(({ endsAt }) => endsAt !== undefined);
  if (end !== undefined) return `record ${grouped(end.seq)} cannot be read: ${bare(end.why)}`;
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
    'Needs no root, no containers and no daemon; performs nothing and changes nothing. JOURNAL is a journal.db, wherever it was copied to (by scribe journal backup, or with the -wal file beside it while no daemon wrote it), a root directory, a golden journal (*.jsonl), or the report of a crash (crash-*.json in the root directory of the daemon that crashed; the journal is looked for beside it first). Without one, the journal of this node. Each journal is replayed to its end, past whatever differs: what was recorded goes on.',
    'A journal that was pruned is replayed from its oldest snapshot behind what was pruned, or from where the pruning was recorded; one that a newer scribe wrote up to what this one does not know, which says which version to use.',
    'Of the report of a crash, that decision is made again which was made last, or could not be made: it shows what follows today, or the stack of what is thrown. Of a daemon that was killed the start after it wrote the report, with what journal, kernel and V8 know of the end.',
    'With --json each difference is an object: journal, seq (of the record that differs), decider (what was decided on, in words), expected (what was recorded; null: nothing), actual (what is decided today; null: nothing), path (where in the record they differ; null: as a whole), cause (the record that was decided on: seq, type, stream), kind (missing, extra, different, threw, request), stream and type of the record. An object with the sums of each journal follows; of one that cannot be replayed, or not to its end, one with journal and failure, which says why.',
  ],
  options,
  operands: { name: '[JOURNAL]...', count: Number.POSITIVE_INFINITY, countMin: 0 },
  exitStatus:
    '0 when every decision (with --break-on, --inspect and the report of a crash: the one that is shown; with --step: those that were gone through) is the one that was recorded, or can be made today where the daemon did not live to record it; 1 when one differs or a journal could not be read',
  examples: [
    ['scribe replay', "This node's journal."],
    [
      'scribe replay --step --break-on container.exited node7/journal.db',
      'Goes to the first exit, and then as you say.',
    ],
    [
      'scribe replay --inspect crash-1795384967000.json',
      'Has the debugger stop in front of what could not be decided.',
    ],
    ['scribe replay node7/journal.db node8/journal.db', 'Journals that were copied from elsewhere.'],
    [
      "scribe replay --json node7/journal.db | jq -c 'select(.path != null) | [.seq, .path, .expected, .actual]'",
      'Which fields differ.',
    ],
  ],
  readsIn: async (values, operands) =>
    operands.length > 0 ? operands.map((name) => dirname(resolve(name))) : readsInRoot(values),
  run: async (values, operands, io) => {
    checkHow(values);
    const until = values.until === undefined ? null : parseMoment(values.until, '--until');
    const stop = values['break-on'] === undefined ? null : breakOn(values['break-on']);
    const names = await journalsOf(operands, values);
    const byHand = stop !== null || values.step === true || values.inspect === true;
    const [name = '', another] = names;
    if (byHand && another !== undefined) throw misuse('--break-on, --step and --inspect take one journal.');
    if (byHand || (another === undefined && (await isCrashReport(name)))) {
      const source = await openSource(name);
      try {
        const { step = false, inspect = false, json = false } = values;
        return await look(source, { toSeq: lastSeq(source, until), stop, step, inspect, json }, io);
      } finally {
        source.close();
      }
    }
    const shown = values.json === true ? showJson(io) : showTable(io);
    const outcomes: Outcome[] = [];
    for (const name of names) outcomes.push(await replayNamed(name, until, shown, io));
    const [only, more] = outcomes;
    // Of several journals each has a range of its own.
    if (only?.tally != null && more === undefined) {
      const { fromSeq, toSeq, decisions } = only.tally;
      void io.recordRead?.({ fromSeq, toSeq, shown: decisions });
    }
    const bad = outcomes.filter(({ problem }) => problem !== null);
    if (bad.length > 0) throw failure(bad.map(({ name, problem }) => `${name}: ${problem}.`).join('\nscribe: '));
    return 0;
  },
});
