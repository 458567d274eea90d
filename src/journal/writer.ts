/**
 * The writer: the one connection that writes. Takes whatever is queued as one transaction, answers once it is on disk,
 * and checkpoints the write-ahead log between batches. A commit that finds no room gives up the reserve and is tried
 * again; the first that fails ends it: nothing that comes after can be promised (C7). Runs in writer-thread.ts, and
 * without a thread in the simulator; whoever starts it has migrated the file and holds the lock.
 */
import { type Batches, createBatches } from './batch.ts';
import { loadKey, writeHeadFile, writeNoteFile } from './checkpoints.ts';
import { connectWriter, type Db, isCorruption, isFull } from './connect.ts';
import { errorOf } from './errors.ts';
import { giveUpReserve } from './disk-space.ts';
import type { Later } from './later.ts';
import { type JournalFiles, journalFiles, noteDamage } from './files.ts';
import { openSeqMark } from './seq-mark.ts';
import { createWalKeeper, type WalKeeper } from './wal.ts';
import type {
  AppendMessage,
  FromWriter,
  ToWriter,
  WriterOptions,
  WriterPort,
  WriterRequest,
} from './writer-messages.ts';

/** The checkpoint beside the journal is made anew this long after a commit. */
const signAfterMs = 10_000;

/**
 * The tree grows behind the records, by a tile at a time (some 0.6 ms of this thread), and has at most a twentieth of the
 * thread's time, so that nobody who commits notices: where more is written than that is enough for, it falls behind. An
 * old journal of a million records has its tree after a minute.
 */
const treeAfterCommitMs = 20;
const treeRestPerWork = 19;
const treeRestMinMs = 5;
const treeRestMaxMs = 500;
const treeRecordsPerStep = 256;
/** What is taken in at once, so that a checkpoint is of the newest records: all that a busy moment leaves behind. */
const treeStepsPerSign = 16;
const treeStepsAtClose = 256;

/** What is freed may take a moment to be there, and somebody else may make room: a commit is tried again for so long. */
const roomWaitMs = 30_000;
const roomLookEveryMs = 50;

/** A bound on one transaction; what is left is the next one. */
const messagesPerTurn = 1024;

const sleeper = new Int32Array(new SharedArrayBuffer(4));

interface TreeGrowth {
  readonly growAfter: (delayMs: number) => void;
  readonly catchUp: (stepsMax: number) => void;
  readonly stop: () => void;
}

/** Has the tree grow until it has all records: later, a step at a time, or at once. */
const createTreeGrowth = (later: Later, step: () => boolean): TreeGrowth => {
  let stop: (() => void) | null = null;
  const growAfter = (delayMs: number): void => {
    stop ??= later(delayMs, () => {
      stop = null;
      const startedMs = performance.now();
      const isMore = step();
      const restMs = treeRestPerWork * (performance.now() - startedMs);
      if (isMore) growAfter(Math.min(treeRestMaxMs, Math.max(treeRestMinMs, restMs)));
    });
  };
  return {
    growAfter,
    catchUp: (stepsMax) => {
      for (let steps = 0; steps < stepsMax && step(); ) steps++;
    },
    stop: () => stop?.(),
  };
};

/** For what nothing is lost without: where the disk is full, SQLite has taken it back whole, and it is refused. */
const unlessTooFull = (id: number, what: string, work: () => void): FromWriter => {
  try {
    work();
  } catch (thrown) {
    if (!isFull(thrown)) throw thrown;
    return { kind: 'refused', id, message: `The disk is too full ${what}.` };
  }
  return { kind: 'answer', id, sealed: [] };
};

const givePagesBack = (db: Db, wal: WalKeeper, pagesMax: number): void => {
  db.pragma(`incremental_vacuum(${pagesMax})`);
  // The file itself ends earlier once the log is in it.
  wal.moveIn();
};

const noteIfDamage = ({ path }: WriterOptions, thrown: unknown): void => {
  if (isCorruption(thrown)) noteDamage(journalFiles(path).damage, thrown);
};

const giveUp = (port: WriterPort, options: WriterOptions, thrown: unknown): void => {
  noteIfDamage(options, thrown);
  port.say({ kind: 'failed', message: errorOf(thrown).message });
  port.close();
};

/** Puts what was signed last beside the journal. */
const writeSigned = (files: JournalFiles, batches: Batches): void => {
  const [end, note] = [batches.signedEnd(), batches.signedTree()];
  if (end !== null) writeHeadFile(files.head, end);
  if (note !== null) writeNoteFile(files.note, note);
};

/** Hears what is to be written until it is closed, or a commit fails. */
export const runWriter = (port: WriterPort, options: WriterOptions): void => {
  try {
    startWriting(port, options);
  } catch (thrown) {
    // What it goes on from cannot be read.
    noteIfDamage(options, thrown);
    throw thrown;
  }
};

const startWriting = (port: WriterPort, options: WriterOptions): void => {
  const files = journalFiles(options.path);
  const { say } = port;
  const db = connectWriter(options.path);
  const key = loadKey(files.key, []);
  const mark = openSeqMark(options.markPath);
  let batches = createBatches(db, key);
  const wal = createWalKeeper(db, options.walAlarmBytes, (bytes) => say({ kind: 'walAlarm', bytes }));
  /** Takes back what is to be done later; null while nothing is. */
  let stopSigning: (() => void) | null = null;

  /**
   * Does what needs room. Where there is none, the reserve is given up and it is done again, on what is on the disk: the
   * transaction that failed was taken back whole. Nothing else can be done meanwhile, and nothing is promised.
   */
  const withRoom = <T>(work: (batches: Batches) => T): T => {
    for (const startedMs = performance.now(); ; ) {
      try {
        return work(batches);
      } catch (thrown) {
        if (!isFull(thrown) || options.reservePath === null || performance.now() - startedMs > roomWaitMs) throw thrown;
        say({ kind: 'diskFull' });
        if (!giveUpReserve(options.reservePath)) Atomics.wait(sleeper, 0, 0, roomLookEveryMs);
        batches = createBatches(db, key);
      }
    }
  };

  const tree = createTreeGrowth(
    (delayMs, work) => port.later(delayMs, () => guarded(work)),
    () => withRoom((into) => into.growTree(treeRecordsPerStep)),
  );

  const stopTimers = (): void => {
    stopSigning?.();
    tree.stop();
  };

  const sign = (): void => {
    stopSigning = null;
    tree.catchUp(treeStepsPerSign);
    writeSigned(files, batches);
  };

  const commit = (messages: readonly AppendMessage[]): void => {
    withRoom((into) => into.commit(messages));
    const { seq, hash } = batches.end();
    mark.write(seq);
    say({ kind: 'committed', seq, hash, readChunks: messages.filter(({ reads }) => reads !== null).length });
    stopSigning ??= port.later(signAfterMs, () => guarded(sign));
    tree.growAfter(treeAfterCommitMs);
  };

  const close = (): void => {
    stopTimers();
    tree.catchUp(treeStepsAtClose);
    sign();
    withRoom((into) => into.checkpoint());
    mark.remove();
    wal.finish();
    db.close();
  };

  const perform = (request: WriterRequest & { readonly id: number }): void => {
    switch (request.kind) {
      case 'seal':
        return say({ kind: 'answer', id: request.id, sealed: withRoom((into) => into.seal()) });
      case 'snapshot':
        return say(
          unlessTooFull(request.id, 'for a snapshot', () =>
            batches.writeSnapshot(request.seq, request.evolverVersion, request.state),
          ),
        );
      case 'giveBack':
        return say(unlessTooFull(request.id, 'to compact the journal', () => givePagesBack(db, wal, request.pagesMax)));
      case 'close':
        close();
        say({ kind: 'answer', id: request.id, sealed: [] });
        return port.close();
    }
  };

  /** What waits, in order: appends that follow one another are one commit. */
  const work = (first: ToWriter): void => {
    let appends: AppendMessage[] = [];
    let taken = 0;
    const flush = (): void => {
      if (appends.length > 0) commit(appends);
      appends = [];
    };
    let message: ToWriter | undefined = first;
    for (; message !== undefined; message = ++taken < messagesPerTurn ? port.next() : undefined) {
      if (message.kind === 'append') appends.push(message);
      else {
        flush();
        perform(message);
        if (message.kind === 'close') return;
      }
    }
    flush();
    wal.keep();
  };

  const guarded = (step: () => void): void => {
    try {
      step();
    } catch (thrown) {
      stopTimers();
      giveUp(port, options, thrown);
    }
  };

  tree.growAfter(treeAfterCommitMs);
  port.hear((message) => guarded(() => work(message)));
};
