/**
 * The journal on disk, as the daemon's main thread holds it: refuses what breaks the contract, hands everything else
 * to the writer thread in few and compact messages, and answers callers once it is durable. Never writes itself,
 * never waits for a disk, and reads in short pages only.
 */
import { Worker } from 'node:worker_threads';
import type { Db } from './connect.ts';
import { checkRecord, createTarget, encodedBytesMax, encodeRecord } from './encoding.ts';
import { errorOf, JournalError } from './errors.ts';
import type { Later } from './later.ts';
import { checkOwnRecord } from './own-records.ts';
import { createReadBuffer } from './read-buffer.ts';
import { createReader, type JournalReader } from './reader.ts';
import { giveBackFor, type JournalRoom } from './room.ts';
import type { JournalHead, JournalRecord, KeptJournal, ReadRow, SealedSegment } from './types.ts';
import type { FromWriter, StartWriter, WriterOptions, WriterRequest } from './writer-messages.ts';

/** Read calls that wait for no durable batch are committed after this long. */
const readsWaitMs = 500;
/** Records that may wait go to the disk by themselves after this long: longer than making a container's files takes. */
const recordsWaitMs = 5;
/** The writer is small; what it holds at once are the bytes of one batch, outside its heap. */
const writerLimits = { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 2 };

export interface SqliteJournalParts extends WriterOptions {
  /** Read-only connection of this thread; closed with the journal. */
  readonly db: Db;
  readonly unlock: () => void;
  /** The write-ahead log passed its limit (its size in bytes), or is back under it (null). */
  readonly onWalAlarm: (bytes: number | null) => void;
  /** A commit found the disk full, and goes on with what was reserved. */
  readonly onDiskFull: () => void;
  /** True while rows of read calls are counted only. */
  readonly refuseReads: () => boolean;
  readonly startWriter: StartWriter;
  /** When what may wait goes to the disk. */
  readonly later: Later;
}

export interface SqliteJournal extends KeptJournal {
  /** Records that were taken and are not durable yet. */
  readonly waitingRecords: () => number;
  /** Gives room in the file back to the disk, for at most so long; commits go on. Resolves with what there is then. */
  readonly giveBack: (forMs: number) => Promise<JournalRoom>;
  /** As writeSnapshot, for a state that is bytes already; the buffer is handed over. */
  readonly writeSnapshotBytes: (seq: number, evolverVersion: number, state: Uint8Array) => Promise<void>;
}

interface Waiting {
  readonly records: readonly JournalRecord[];
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

interface Asked {
  readonly resolve: (sealed: readonly SealedSegment[]) => void;
  readonly reject: (error: Error) => void;
}

/** The writer in a thread of its own. */
export const startWriterThread: StartWriter = (options, { said, failed, ended }) => {
  const worker = new Worker(new URL('./writer-thread.ts', import.meta.url), {
    name: 'scribe journal',
    workerData: options,
    resourceLimits: writerLimits,
  });
  worker.on('message', said);
  worker.on('error', failed);
  worker.on('exit', ended);
  return {
    post: (message, transfer) =>
      worker.postMessage(
        message,
        transfer.map(({ buffer }) => buffer as ArrayBuffer),
      ),
  };
};

/** Records that were accepted and are not durable yet: those not yet handed to the writer, and those that are. */
const createWaiting = () => {
  let queued: Waiting[] = [];
  let posted: Waiting[] = [];
  return {
    add: (records: readonly JournalRecord[]): Promise<void> =>
      new Promise((resolve, reject) => {
        queued.push({ records, resolve, reject });
      }),
    queued: (): readonly Waiting[] => queued,
    handOver: (): void => {
      posted = posted.length === 0 ? queued : posted.concat(queued);
      queued = [];
    },
    resolveThrough: (seq: number): void => {
      const done = posted.findIndex(({ records }) => (records.at(-1)?.seq ?? 0) > seq);
      const durable = done < 0 ? posted : posted.slice(0, done);
      posted = done < 0 ? [] : posted.slice(done);
      for (const { resolve } of durable) resolve();
    },
    reject: (error: Error): void => {
      for (const each of [...posted, ...queued]) each.reject(error);
      posted = [];
      queued = [];
    },
  };
};

/** What the writer was asked and has not answered. */
const createAsked = () => {
  const asked = new Map<number, Asked>();
  let lastId = 0;
  return {
    add: (): { readonly id: number; readonly answer: Promise<readonly SealedSegment[]> } => {
      lastId += 1;
      const { promise: answer, resolve, reject } = Promise.withResolvers<readonly SealedSegment[]>();
      asked.set(lastId, { resolve, reject });
      return { id: lastId, answer };
    },
    answer: (id: number, sealed: readonly SealedSegment[]): void => {
      asked.get(id)?.resolve(sealed);
      asked.delete(id);
    },
    refuse: (id: number, error: Error): void => {
      asked.get(id)?.reject(error);
      asked.delete(id);
    },
    reject: (error: Error): void => {
      for (const { reject } of asked.values()) reject(error);
      asked.clear();
    },
  };
};

/** When what nobody waits for goes to the disk by itself; needless once anything else does. */
const createFlushing = (later: Later, flush: () => void) => {
  let stopForReads: (() => void) | null = null;
  let stopForRecords: (() => void) | null = null;
  return {
    forReads: (): void => void (stopForReads ??= later(readsWaitMs, flush)),
    forRecords: (): void => void (stopForRecords ??= later(recordsWaitMs, flush)),
    stop: (): void => {
      stopForReads?.();
      stopForRecords?.();
      stopForReads = null;
      stopForRecords = null;
    },
  };
};

interface WriterEvents extends Pick<SqliteJournalParts, 'onDiskFull' | 'onWalAlarm'> {
  readonly committed: (seq: number, hash: Uint8Array, readChunks: number) => void;
  readonly answered: (id: number, sealed: readonly SealedSegment[]) => void;
  readonly refused: (id: number, error: Error) => void;
  readonly fail: (message: string) => void;
}

const hear = (message: FromWriter, hears: WriterEvents): void => {
  switch (message.kind) {
    case 'committed':
      return hears.committed(message.seq, message.hash, message.readChunks);
    case 'answer':
      return hears.answered(message.id, message.sealed);
    case 'refused':
      return hears.refused(message.id, new JournalError('BadRecord', message.message));
    case 'diskFull':
      return hears.onDiskFull();
    case 'walAlarm':
      return hears.onWalAlarm(message.bytes);
    case 'failed':
      return hears.fail(message.message);
  }
};

const checkAll = (records: readonly JournalRecord[], firstSeq: number): void =>
  records.forEach((record, index) => {
    checkRecord(record, firstSeq + index);
    checkOwnRecord(record);
  });

/** What may be asked whether or not the writer has ended. */
const questionsTo = (reader: JournalReader) =>
  ({
    newestSnapshot: async (evolverVersion) => reader.newestSnapshot(evolverVersion),
    seqAtTime: async (tNs) => reader.seqAtTime(tNs),
    readReads: (query) => reader.readReads(query),
    closedSegments: async () => reader.closedSegments(),
    placesOfStream: async (stream) => reader.placesOfStream(stream),
    lastSeqOfStream: async (stream) => reader.lastSeqOfStream(stream),
    placesOfCall: async (call) => reader.placesOfCall(call),
    usedBytes: async () => reader.usedBytes(),
  }) satisfies Partial<SqliteJournal>;

/** What is on its way to the disk, and the writer that takes it there. */
const createWriting = (parts: SqliteJournalParts, durableHead: JournalHead) => {
  const { onWalAlarm, onDiskFull, refuseReads, startWriter, later, path, walAlarmBytes, reservePath, markPath } = parts;
  const reads = createReadBuffer();
  const waiting = createWaiting();
  const asked = createAsked();
  const flushing = createFlushing(later, () => flush());
  let head = durableHead;
  let isFlushing = false;
  let ended: JournalError | null = null;
  /** Of the request to close; its answer is the last that the writer says. */
  let closeId: number | null = null;
  const { promise: failed, resolve: tellFailed } = Promise.withResolvers<Error>();
  const { promise: gone, resolve: tellGone } = Promise.withResolvers<void>();

  const end = (error: JournalError): void => {
    ended = error;
    flushing.stop();
    waiting.reject(error);
    asked.reject(error);
  };

  /** At once, and not when whoever waits for it goes on: the end of the writer may be told in the same breath. */
  const closed = (): void => {
    end(new JournalError('Closed', `The journal ${path} is closed.`));
  };

  const fail = (message: string): void => {
    if (ended !== null) return;
    const error = new JournalError(
      'Failed',
      `The journal ${path} takes nothing more since a commit failed: ${message}.`,
    );
    end(error);
    tellFailed(error);
  };

  const flush = (): void => {
    isFlushing = false;
    if (ended !== null) return;
    flushing.stop();
    const records = encodeBatch(waiting.queued());
    const chunk = reads.take();
    if (records.length === 0 && chunk === null) return;
    waiting.handOver();
    writer.post({ kind: 'append', records, reads: chunk }, chunk === null ? [records] : [records, chunk.rows]);
  };

  const flushSoon = (): void => {
    if (isFlushing) return;
    isFlushing = true;
    // After every caller that this turn woke has had its say: they share one message and one commit.
    process.nextTick(flush);
  };

  const committed = (seq: number, hash: Uint8Array, readChunks: number): void => {
    head = { seq, hash };
    reads.committed(readChunks);
    waiting.resolveThrough(seq);
  };

  const answered = (id: number, sealed: readonly SealedSegment[]): void => {
    asked.answer(id, sealed);
    if (id === closeId) closed();
  };

  const hears = { committed, answered, refused: asked.refuse, onDiskFull, onWalAlarm, fail };
  const writer = startWriter(
    { path, walAlarmBytes, reservePath, markPath },
    {
      said: (message) => hear(message, hears),
      failed: (error) => fail(errorOf(error).message),
      ended: (code) => {
        tellGone();
        fail(`its writer ended with code ${code}`);
      },
    },
  );

  const ask = async (
    request: WriterRequest,
    transfer: readonly Uint8Array[] = [],
  ): Promise<readonly SealedSegment[]> => {
    if (ended !== null) throw ended;
    flush();
    const { id, answer } = asked.add();
    if (request.kind === 'close') closeId = id;
    writer.post({ ...request, id }, transfer);
    return answer;
  };

  const addRead = (row: ReadRow): void => {
    if (ended !== null) return;
    if (refuseReads()) reads.refuse();
    else if (reads.add(row)) flush();
    else flushing.forReads();
  };

  return {
    head: () => head,
    /** Why nothing more is taken. */
    ended: () => ended,
    failed,
    gone,
    /** Resolves when they are durable. */
    add: (records: readonly JournalRecord[], mayWait: boolean): Promise<void> => {
      if (mayWait) flushing.forRecords();
      else flushSoon();
      return waiting.add(records);
    },
    addRead,
    ask,
  };
};

/** Starts the writer on a journal that is migrated and locked. Resolves nothing: the first append waits for it. */
export const startSqliteJournal = (parts: SqliteJournalParts): SqliteJournal => {
  const { db, unlock } = parts;
  const reader = createReader(db);
  const { head, ended, failed, gone, add, addRead, ask } = createWriting(parts, reader.head());
  let acceptedSeq = head().seq;
  let closing: Promise<void> | null = null;

  const writeSnapshotBytes = async (seq: number, evolverVersion: number, state: Uint8Array): Promise<void> => {
    if (seq > head().seq)
      throw new JournalError('BadRecord', `A snapshot at ${seq} is past the last record ${head().seq}.`);
    await ask({ kind: 'snapshot', seq, evolverVersion, state }, [state]);
  };

  const close = async (): Promise<void> => {
    try {
      if (ended() === null) await ask({ kind: 'close' });
    } finally {
      await gone;
      db.close();
      unlock();
    }
  };

  return {
    ...questionsTo(reader),
    failed,
    head,
    append: async (records, mayWait = false) => {
      const why = ended();
      if (why !== null) throw why;
      checkAll(records, acceptedSeq + 1);
      if (records.length === 0) return;
      acceptedSeq += records.length;
      await add(records, mayWait);
    },
    appendRead: addRead,
    read: (query = {}) => reader.read({ ...query, toSeq: Math.min(query.toSeq ?? head().seq, head().seq) }),
    writeSnapshot: async ({ seq, evolverVersion, state }) =>
      writeSnapshotBytes(seq, evolverVersion, new TextEncoder().encode(state)),
    writeSnapshotBytes,
    giveBack: (forMs) => giveBackFor(forMs, reader.room, (pagesMax) => ask({ kind: 'giveBack', pagesMax })),
    close: async () => {
      closing ??= close();
      return closing;
    },
    sealReads: async () => ask({ kind: 'seal' }),
    waitingRecords: () => acceptedSeq - head().seq,
  };
};

/** Grown as needed and kept: encoding makes one copy, and what is handed over is no larger than it must be. */
let scratch = createTarget(64 * 1024);
const scratchKeptMax = 1024 * 1024;

const encodeBatch = (batch: readonly Waiting[]): Uint8Array => {
  let bytesMax = 0;
  for (const { records } of batch) for (const record of records) bytesMax += encodedBytesMax(record);
  const target = bytesMax <= scratch.bytes.length ? scratch : createTarget(bytesMax);
  if (target.bytes.length <= scratchKeptMax) scratch = target;
  let end = 0;
  for (const { records } of batch) for (const record of records) end = encodeRecord(record, target, end);
  return new Uint8Array(target.bytes.subarray(0, end));
};
