/** From a journal, or the report of a crash, to the text of a golden journal: chosen, shrunk, redacted, and decided once more. */
import { writeGolden } from '../../../src/cli/replay/golden-text.ts';
import { openSource } from '../../../src/cli/replay/open-source.ts';
import { decisionsOf } from '../../../src/cli/replay/run.ts';
import type { Source } from '../../../src/cli/replay/source.ts';
import { thingNamed } from '../../../src/cli/replay/things.ts';
import type { Level } from '../../../src/cli/export/level.ts';
import type { Sequenced } from '../../../src/domain/model/records.ts';
import { initialState } from '../../../src/domain/model/state.ts';
import { evolve } from '../../../src/domain/turn/evolve.ts';
import { toJournalRecord } from '../../../src/engine/codec.ts';
import { redactionOf } from './redact.ts';
import { type Known, retold } from './retell.ts';
import { shrink } from './shrink.ts';
import { type Things, thingsIn, type Turn, turnsOf } from './turns.ts';

export interface GoldenWish {
  /** pod/NAME, container/ID, …, as `scribe replay --step` takes them. */
  readonly things: readonly string[];
  /** Numbers of records. */
  readonly around: readonly number[];
  /** The number of the last record that may be in it; null: all may. */
  readonly until: number | null;
  readonly level: Level;
}

export interface Golden {
  readonly text: string;
  readonly records: number;
  /** So many the journal has. */
  readonly of: number;
  readonly things: readonly string[];
}

/** Throws an Error with a sentence where it cannot be made so that everything is decided as it was. */
export const makeGolden = async (path: string, wish: GoldenWish): Promise<Golden> => {
  const source = await openSource(path);
  try {
    return goldenOf(source, wish);
  } finally {
    source.close();
  }
};

const goldenOf = (source: Source, { things: names, around, until, level }: GoldenWish): Golden => {
  const known = knownOf(source);
  const records = [...source.records(1, until ?? source.headSeq, { unreadable: () => undefined, writer: null })];
  // What is decided today on an input that could not be decided is about things, too.
  const turns = turnsOf([...records, ...(until === null ? (known.undecided?.today ?? []) : [])]);
  const things = thingsIn(turns);
  const wanted = new Set([...names.map((name) => namedIn(records, things, name)), ...aroundOf(turns, things, around)]);
  if (wanted.size === 0) for (const thing of aroundOf(turns, things, wrongIn(known))) wanted.add(thing);
  if (wanted.size === 0)
    throw new Error('Everything in it is decided as it was: say with --thing or --around what it shall be about.');
  const shrunk = shrink(turns, things, wanted, known);
  if (shrunk.otherwise !== null)
    throw new Error(
      `Record ${shrunk.otherwise} is decided otherwise when the journal begins with what is left of it; it was pruned, or --until cuts what it needs.`,
    );
  const kept = shrunk.turns.flatMap(({ input, events }) => [input, ...events]);
  const told = retold(shrunk.turns, { known, ...redactionOf(level, kept) });
  if (told.otherwise !== null)
    throw new Error(
      `Record ${told.otherwise} is decided otherwise when it is redacted: with --level request or request-response it is not, but then what clients chose is in it.`,
    );
  return {
    text: writeGolden(withBoots(told.records)),
    records: told.records.length,
    of: source.headSeq,
    things: [...shrunk.things].toSorted(),
  };
};

const EFFECT_PATH = /^body\.effects\[(\d+)\]$/;

const knownOf = (source: Source): Known => {
  const differing = new Set<number>();
  const otherRequests = new Set<string>();
  const { crash } = source;
  const undecidedSeq = crash === undefined || crash.isDecided ? null : (crash.input?.seq ?? null);
  let undecided: Known['undecided'] = null;
  for (const { input, decided, differences } of decisionsOf(source)) {
    if (input.seq === undecidedSeq) undecided = { seq: input.seq, today: decided };
    for (const { kind, seq, path } of differences)
      if (kind !== 'request') differing.add(input.seq);
      else otherRequests.add(`${seq}.${EFFECT_PATH.exec(path ?? '')?.[1]}`);
  }
  return { differing, otherRequests, undecided };
};

/** What could not be decided, or else what is decided otherwise first. */
const wrongIn = ({ undecided, differing, otherRequests }: Known): number[] => {
  if (undecided !== null) return [undecided.seq];
  const [asked] = [...otherRequests].map((effect) => Number.parseInt(effect, 10));
  return [...differing]
    .slice(0, 1)
    .concat(asked ?? [])
    .slice(0, 1);
};

const aroundOf = (turns: readonly Turn[], things: Things, seqs: readonly number[]): string[] =>
  seqs.flatMap((seq) => {
    const turn = turns.find(({ input, events }) => [input, ...events].some((record) => record.seq === seq));
    if (turn === undefined) throw new Error(`There is no record ${seq}, or it is pruned.`);
    const streams = [turn.input, ...turn.events].flatMap(({ stream }) => [stream, ...things.touchedBy(stream)]);
    return streams.flatMap((stream) => things.of(stream) ?? []);
  });

/** At whatever time it was there. */
const namedIn = (records: readonly Sequenced[], things: Things, name: string): string => {
  const state = initialState();
  for (const record of records) {
    evolve(state, record);
    if (record.type !== 'sandbox.requested' && record.type !== 'container.requested' && record.type !== 'image.pulled')
      continue;
    const stream = thingNamed(state, name)?.stream;
    if (stream !== undefined) return things.of(stream) ?? stream;
  }
  throw new Error(`There is no ${name} in this journal, or its making is pruned.`);
};

/** Each record has the boot that the last start told of. */
const withBoots = (records: readonly Sequenced[]): ReturnType<typeof toJournalRecord>[] => {
  let boot = '';
  return records.map((record) => {
    if (record.type === 'daemon.started') boot = record.body.facts.node.bootId;
    return toJournalRecord(record, boot);
  });
};
