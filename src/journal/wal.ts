/**
 * Keeps the write-ahead log small: moves its pages into the database between batches, and tells when it has grown
 * past a limit all the same (a reader that never ends keeps it from starting over). Runs in the writer's thread.
 */
import { type Db, isFull } from './connect.ts';

const pageBytes = 4096;
/** Enough for one checkpoint to be mostly sequential, little enough to stay quick. */
const checkpointPages = 1000;
/** From here on readers are waited for, so that the log can start over. */
const restartPages = 4000;
/** Looking costs as much as a small append. */
const lookEveryBatches = 8;
const restartWaitMs = 50;
const finishWaitMs = 500;
const usualWaitMs = 5000;

export interface WalKeeper {
  /** After a batch: checkpoints when it is due. */
  readonly keep: () => void;
  /** Moves what is in the log into the database, as far as no reader needs it. */
  readonly moveIn: () => void;
  /** Before closing: empties the log. */
  readonly finish: () => void;
}

interface WalState {
  readonly log: number;
  readonly checkpointed: number;
}

export const createWalKeeper = (db: Db, alarmBytes: number, onAlarm: (bytes: number | null) => void): WalKeeper => {
  const checkpoint = (mode: 'PASSIVE' | 'RESTART' | 'TRUNCATE'): void => {
    db.pragma(`wal_checkpoint(${mode})`);
  };
  // What it has grown by while somebody read for long goes back to the disk when it starts over; as much as it usually has stays.
  db.pragma(`journal_size_limit = ${restartPages * pageBytes}`);
  const look = db.prepare<[], WalState>('PRAGMA wal_checkpoint(NOOP)');
  let alarmed = false;
  let triedAtPages = 0;
  let batches = 0;

  /** A disk that is full stops no commit yet: the log still holds everything, and nothing is let in any more (C7). */
  const unlessFull = (work: () => void): void => {
    try {
      work();
    } catch (thrown) {
      if (!isFull(thrown)) throw thrown;
    }
  };

  /** Readers are waited for this long; whoever reads longer does not hold up the writer. */
  const waiting = (waitMs: number, work: () => void): void => {
    db.pragma(`busy_timeout = ${waitMs}`);
    try {
      work();
    } finally {
      db.pragma(`busy_timeout = ${usualWaitMs}`);
    }
  };

  const watch = (pages: number): void => {
    const bytes = pages * pageBytes;
    if (bytes > alarmBytes !== alarmed) {
      alarmed = !alarmed;
      onAlarm(alarmed ? bytes : null);
    }
  };

  return {
    keep: () => {
      if (++batches % lookEveryBatches !== 0) return;
      const { log, checkpointed } = look.get() ?? { log: 0, checkpointed: 0 };
      if (log < triedAtPages) triedAtPages = 0;
      if (log - checkpointed >= checkpointPages) unlessFull(() => checkpoint('PASSIVE'));
      if (log >= restartPages && log - triedAtPages >= checkpointPages) {
        triedAtPages = log;
        unlessFull(() => waiting(restartWaitMs, () => checkpoint('RESTART')));
      }
      watch(log);
    },
    moveIn: () => unlessFull(() => checkpoint('PASSIVE')),
    finish: () => unlessFull(() => waiting(finishWaitMs, () => checkpoint('TRUNCATE'))),
  };
};
