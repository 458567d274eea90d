/**
 * Who read the journal's file, as calls: the first reading is recorded before it is answered. What is read again in the same
 * way is counted, and recorded as one call when ten seconds are over, so that whoever asks without a pause is seen and fills
 * no journal. Of somebody who asks in ever other ways only so many are told apart; the rest is counted as his. Nothing is
 * left out of the counts; a daemon that is killed loses those of its last ten seconds.
 *
 *   first ──> recorded; again ──> counted ──(10 s after the last record)──> recorded, `times` many; none ──> forgotten
 */
import type { Failure } from '../domain/model/errors.ts';
import type { JournalRead } from '../domain/model/reads.ts';
import type { CallOptions, SubmitCall } from '../engine/ports.ts';

export interface JournalReads {
  /** null: it is recorded, or will be; else why it can't be. */
  readonly record: (read: JournalRead, asked: CallOptions) => Promise<Failure | null>;
  /** Records what is only counted yet. */
  readonly close: () => Promise<void>;
}

const COUNTED_FOR_MS = 10_000;
/** Ways of reading that are told apart at a time. */
const WAYS_MAX = 64;

/** Readings in one way since its last record. */
interface Counted {
  read: JournalRead | null;
  asked: CallOptions;
  readonly timer: NodeJS.Timeout;
}

const least = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : Math.min(a, b);
const most = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : Math.max(a, b);
const sum = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? undefined : a + b;

const isAlike = (a: JournalRead, b: JournalRead): boolean =>
  JSON.stringify([a.subcommand, a.words]) === JSON.stringify([b.subcommand, b.words]);

/** Two readings as one, in the words of the later; what one of them does not know, both don't. */
const both = (earlier: JournalRead, later: JournalRead): JournalRead => {
  const fromSeq = least(earlier.fromSeq, later.fromSeq);
  const toSeq = most(earlier.toSeq, later.toSeq);
  const shown = sum(earlier.shown, later.shown);
  return {
    subcommand: later.subcommand,
    words: later.words,
    ...(fromSeq === undefined ? {} : { fromSeq }),
    ...(toSeq === undefined ? {} : { toSeq }),
    ...(shown === undefined ? {} : { shown }),
    times: (earlier.times ?? 1) + 1,
    ...(earlier.differing === true || !isAlike(earlier, later) ? { differing: true } : {}),
  };
};

export function createJournalReads(submit: SubmitCall, countedForMs = COUNTED_FOR_MS): JournalReads {
  const ways = new Map<string, Counted>();

  const recordNow = async (read: JournalRead, { caller, unknownFields = [] }: CallOptions): Promise<Failure | null> => {
    const { outcome } = await submit({ method: 'ReadJournal', ...read }, { caller, deadlineNs: null, unknownFields });
    return outcome.ok ? null : outcome.failure;
  };

  const look = (way: string): void => {
    const counted = ways.get(way);
    if (counted === undefined) return;
    const { read, asked, timer } = counted;
    counted.read = null;
    // Once the engine has stopped nothing is recorded any more; close() was there before.
    if (read !== null) recordNow(read, asked).catch(() => undefined);
    else {
      clearInterval(timer);
      ways.delete(way);
    }
  };

  /** A pid is another one each time; the program and the user are not. */
  const wayOf = ({ subcommand, words }: JournalRead, { caller }: CallOptions): string => {
    const who = [caller?.uid, caller?.program ?? caller?.executable];
    const way = JSON.stringify([...who, subcommand, words]);
    return ways.has(way) || ways.size < WAYS_MAX ? way : JSON.stringify([caller?.uid]);
  };

  return {
    record: async (read, asked) => {
      const way = wayOf(read, asked);
      const counted = ways.get(way);
      if (counted !== undefined) {
        counted.read = counted.read === null ? read : both(counted.read, read);
        counted.asked = asked;
        return null;
      }
      const timer = setInterval(look, countedForMs, way).unref();
      ways.set(way, { read: null, asked, timer });
      return recordNow(read, asked);
    },
    close: async () => {
      const left = [...ways.values()];
      ways.clear();
      for (const { timer } of left) clearInterval(timer);
      await Promise.all(left.map(async ({ read, asked }) => (read === null ? null : recordNow(read, asked))));
    },
  };
}
