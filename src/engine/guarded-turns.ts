/**
 * Turns, guarded: an input is decided, numbered and evolved in one synchronous stretch and handed to the journal. A
 * turn that throws is a bug, and leaves nothing: the write state is made anew from what was published and what is on
 * its way to the disk, so that the guard costs nothing as long as nothing throws. Such an input is then handled in
 * another way, which is recorded; each way that is tried asks for less than the one before, and when none works, the
 * daemon ends (C7). No input goes without its record.
 */
import type { decide as decideInput } from '../domain/turn/decide.ts';
import { evolve } from '../domain/turn/evolve.ts';
import type { Input, Sequenced } from '../domain/model/records.ts';
import { KnownError } from '../domain/model/errors.ts';
import { copyState, type NodeState, replaceState } from '../domain/model/state.ts';
import { BODY_BYTES_MAX, type Journal, type JournalRecord, type RecordOwn } from '../journal/types.ts';
import { toJournalRecord } from './codec.ts';
import type { ReleasedEffect } from './effect-runner.ts';
import type { Clock } from './ports.ts';
import { releasedBy } from './released-effects.ts';
import { type Draft, nameOf, nextWay, told } from '../domain/turn/after-a-throw.ts';

export interface DecidedTurn {
  readonly records: readonly Sequenced[];
  readonly effects: readonly ReleasedEffect[];
}

export interface SubmittedTurn {
  /** Of the input's record; null when the input could not be taken, and the journal says only that. */
  readonly seq: number | null;
  /** Resolves when the turn's records are durable and released. */
  readonly durable: Promise<void>;
}

/** What is not over when the daemon ends otherwise than in order. */
export interface Unfinished {
  /** Decided, and on their way to the disk. */
  readonly records: readonly Sequenced[];
  /** The newest input that was taken, as it was to be recorded; null: none was. */
  readonly latest: Sequenced<Input> | null;
  readonly isDecided: boolean;
}

export interface Turns {
  readonly unfinished: () => Unfinished;
  /** `mayWait`: its records may go to the disk some milliseconds later, with others. */
  readonly submit: (draft: Draft, mayWait?: boolean) => SubmittedTurn;
  readonly recordOwn: RecordOwn;
  /** When the newest that was taken is durable. */
  readonly newestDurable: () => Promise<void>;
  /** When the oldest input was taken that is not durable yet; null: nothing is on its way to the disk. */
  readonly oldestUnpublishedNs: () => bigint | null;
}

export interface TurnsOptions {
  readonly journal: Journal;
  readonly state: NodeState;
  /** Folded from what was published, and from nothing else. */
  readonly published: Readonly<NodeState>;
  readonly clock: Clock;
  readonly boot: string;
  readonly decide: typeof decideInput;
  /** Hears each turn when it is durable, in order. */
  readonly release: (turn: DecidedTurn) => void;
  /** Told, in a sentence, what nobody may miss. */
  readonly report: (message: string) => void;
  readonly fatal: (error: Error) => void;
}

interface Decided {
  readonly records: readonly Sequenced[];
  /** The same, as the journal takes them. */
  readonly rows: readonly JournalRecord[];
}

export function createTurns(options: TurnsOptions): Turns {
  const { journal, state, published, clock, boot, decide, release, report, fatal } = options;
  /** Records of turns that are not durable yet, oldest first. */
  const unpublished = new Set<readonly Sequenced[]>();
  /** Makes the requests of the newest turn's effects, unless they are made. */
  let makeRequests: () => unknown = () => null;
  let nextSeq = journal.head().seq + 1;
  let newestDurable: Promise<void> = Promise.resolve();
  let latest: { readonly draft: Draft; readonly seq: number; isDecided: boolean } | null = null;

  function submit(draft: Draft, mayWait = false): SubmittedTurn {
    makeRequests();
    latest = { draft, seq: nextSeq, isDecided: false };
    try {
      return append(decided(draft), mayWait);
    } catch (error) {
      return decideOtherwise(draft, error);
    }
  }

  /** Decides inputs in a row; when one of them throws, none of them has happened. */
  function decided(...drafts: readonly Draft[]): Decided {
    const [atNs, monoNs] = [clock.nowNs(), clock.monoNs()];
    const records: Sequenced[] = [];
    try {
      for (const { input, stream, cause, call } of drafts) {
        const sequenced = inputRecord({ input, stream, cause, call }, nextSeq + records.length, { atNs, monoNs });
        records.push(sequenced, ...decide(state, sequenced));
      }
      const rows = records.map((record) => toJournalRecord(record, boot));
      const tooLong = rows.find(({ body }) => isTooLong(body));
      if (tooLong !== undefined) throw new KnownError(`the record ${tooLong.type} is too long for the journal`);
      return { records, rows };
    } catch (error) {
      putBack();
      throw error;
    }
  }

  /**
   * The requests of a turn's effects are made of the state that it left, so before the next turn, but behind the journal's
   * back: by nextTick the records are on their way to the disk, and that takes longer than making the requests.
   */
  function append({ records, rows }: Decided, mayWait: boolean): SubmittedTurn {
    nextSeq += records.length;
    if (latest !== null) latest.isDecided = true;
    unpublished.add(records);
    const effects = once(() => records.flatMap((record) => releasedBy(record, state, report)));
    makeRequests = effects;
    const durable = journal.append(rows, mayWait).then(() => {
      unpublished.delete(records);
      release({ records, effects: effects() });
    });
    process.nextTick(effects);
    newestDurable = durable;
    durable.catch(fatal);
    return { seq: records[0]?.seq ?? null, durable };
  }

  function putBack(): void {
    const before = copyState(published);
    for (const records of unpublished) for (const record of records) evolve(before, record);
    replaceState(state, before);
  }

  function decideOtherwise(draft: Draft, first: unknown): SubmittedTurn {
    const { input, stream } = draft;
    const what = `${nameOf(input)} on ${stream}`;
    let error = first;
    for (let way = nextWay(draft, first, null); way !== null; way = nextWay(draft, error, way)) {
      try {
        const turn = decided(...way.drafts(nextSeq));
        report(`What follows from ${what} could not be decided, so ${way.words} (record ${nextSeq}): ${told(first)}`);
        const taken = append(turn, false);
        return way.takes ? taken : { ...taken, seq: null };
      } catch (thrown) {
        error = thrown;
      }
    }
    const end = new KnownError(`What follows from ${what} could not be decided, nor written down: ${told(first)}`, {
      cause: first,
    });
    const durable = Promise.reject<void>(end);
    durable.catch(() => undefined);
    fatal(end);
    return { seq: null, durable };
  }

  return {
    submit,
    unfinished: () => ({
      records: [...unpublished].flat(),
      latest:
        latest === null ? null : inputRecord(latest.draft, latest.seq, { atNs: clock.nowNs(), monoNs: clock.monoNs() }),
      isDecided: latest?.isDecided ?? false,
    }),
    recordOwn(own) {
      const at = { atNs: clock.nowNs(), monoNs: clock.monoNs() };
      const record = { ...own, ...at, seq: nextSeq, boot, cause: null, call: null };
      nextSeq += 1;
      const durable = journal.append([record]);
      durable.catch(fatal);
      return durable;
    },
    newestDurable: () => newestDurable,
    oldestUnpublishedNs() {
      const [oldest] = unpublished;
      return oldest?.[0]?.atNs ?? null;
    },
  };
}

const inputRecord = (
  { input, stream, cause, call }: Draft,
  seq: number,
  at: { readonly atNs: bigint; readonly monoNs: bigint },
): Sequenced<Input> => ({ ...input, seq, ...at, stream, cause, call: input.type === 'call.received' ? seq : call });

const once = <T>(make: () => T): (() => T) => {
  let made: { readonly value: T } | null = null;
  return () => (made ??= { value: make() }).value;
};

/** No character takes more bytes than this. */
const UTF8_BYTES_MAX = 3;

const isTooLong = (body: string): boolean =>
  body.length * UTF8_BYTES_MAX > BODY_BYTES_MAX && Buffer.byteLength(body) > BODY_BYTES_MAX;
