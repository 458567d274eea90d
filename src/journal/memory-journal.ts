/**
 * The in-memory twin of the SQLite journal: same contract, same hashes, no disk. For tests and the simulator, which
 * decides through `commit` when (and whether) a batch becomes durable, and takes `contents` over a simulated crash.
 * Must not be used where anything has to outlive the process.
 */
import { bodyHash, chainHash, checkRecord, chunkRoot, GENESIS } from './encoding.ts';
import { errorOf, JournalError } from './errors.ts';
import { isInlineStream } from './streams.ts';
import {
  checkOwnRecord,
  isOwnType,
  JOURNAL_PRUNED,
  parsePruned,
  parseReadsClosed,
  READS_CLOSED,
} from './own-records.ts';
import { decodeReadRows, encodeReadRow, READ_ROW_BYTES_MAX } from './read-rows.ts';
import type { JournalRecord, KeptJournal, ReadQuery, ReadRow, SealedSegment, Snapshot } from './types.ts';

/** What is durable. Only grows, but for pruning; handing it to the next journal is what a restart is. */
export interface MemoryContents {
  /** Index is seq - 1. */
  readonly rows: MemoryRow[];
  /** Where to look for what was recorded on a stream, or on behalf of a call. */
  readonly seqsOfStream: Map<string, number[]>;
  readonly seqsOfCall: Map<number, number[]>;
  readonly chunks: MemoryChunk[];
  readonly closed: SealedSegment[];
  readonly snapshots: Snapshot[];
}

export interface MemoryRow {
  /** Null once pruned. */
  record: JournalRecord | null;
  /** What the hashes are taken of: pruned, too. */
  readonly written: JournalRecord;
  /** Taken when somebody first asks for them, which most tests never do. */
  hash: Uint8Array | null;
}

interface MemoryChunk {
  readonly segment: number;
  readonly rows: Uint8Array;
}

export interface MemoryJournalOptions {
  /** Durable contents of an earlier life; changed in place. */
  readonly contents?: MemoryContents;
  /** Stands for the disk: a batch is durable once it resolves; when it rejects, the journal has failed. */
  readonly commit?: (records: readonly JournalRecord[]) => Promise<void>;
}

export interface MemoryJournal extends KeptJournal {
  readonly contents: MemoryContents;
}

interface Waiting {
  readonly records: readonly JournalRecord[];
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export const emptyContents = (): MemoryContents => ({
  rows: [],
  seqsOfStream: new Map(),
  seqsOfCall: new Map(),
  chunks: [],
  closed: [],
  snapshots: [],
});

/** Whether a record is what the query asks for; its limit aside. */
const matches = (query: ReadQuery, record: JournalRecord): boolean =>
  record.seq >= (query.fromSeq ?? 1) &&
  record.seq <= (query.toSeq ?? Number.MAX_SAFE_INTEGER) &&
  (query.types?.includes(record.type) ?? true) &&
  (query.streams?.includes(record.stream) ?? true) &&
  (query.call === undefined || record.call === query.call) &&
  (query.fromNs === undefined || record.atNs >= query.fromNs) &&
  (query.toNs === undefined || record.atNs <= query.toNs);

const closeSegment = (contents: MemoryContents, record: JournalRecord): void => {
  const sealed = parseReadsClosed(record);
  if (!contents.closed.some(({ segment }) => segment === sealed.segment)) contents.closed.push(sealed);
};

const prune = (contents: MemoryContents, record: JournalRecord): void => {
  const { seqs, segments } = parsePruned(record);
  for (const [first, last] of seqs) {
    for (let seq = first; seq <= last; seq++) {
      const row = contents.rows[seq - 1];
      if (row?.record && !isOwnType(row.record.type)) row.record = null;
    }
  }
  const kept = contents.chunks.filter(({ segment }) => !segments.includes(segment));
  contents.chunks.splice(0, contents.chunks.length, ...kept);
  dropSnapshots(contents, Math.max(0, ...seqs.map(([, last]) => last)));
};

/** A snapshot from before what is pruned may hold objects whose end is no longer told. */
const dropSnapshots = (contents: MemoryContents, beforeSeq: number): void => {
  const kept = contents.snapshots.filter(({ seq }) => seq >= beforeSeq);
  contents.snapshots.splice(0, contents.snapshots.length, ...kept);
};

const noteSeq = <K>(seqs: Map<K, number[]>, key: K, seq: number): void => {
  const known = seqs.get(key);
  if (known === undefined) seqs.set(key, [seq]);
  else known.push(seq);
};

const addRecord = (contents: MemoryContents, record: JournalRecord): void => {
  contents.rows.push({ record, written: record, hash: null });
  noteSeq(contents.seqsOfStream, record.stream, record.seq);
  if (record.call !== null) noteSeq(contents.seqsOfCall, record.call, record.seq);
  if (record.type === READS_CLOSED) closeSegment(contents, record);
  if (record.type === JOURNAL_PRUNED) prune(contents, record);
};

/** The chain's hash after record `seq`. */
const hashAt = ({ rows }: MemoryContents, seq: number): Uint8Array => {
  const hashed = rows.findLastIndex(({ hash }, index) => hash !== null && index < seq);
  let hash = rows[hashed]?.hash ?? GENESIS;
  for (const row of rows.slice(hashed + 1, seq)) {
    hash = chainHash(hash, row.written.seq, bodyHash(row.written));
    row.hash = hash;
  }
  return hash;
};

const encodeRows = (rows: readonly ReadRow[]): Uint8Array => {
  const buffer = Buffer.alloc(rows.length * READ_ROW_BYTES_MAX);
  return Uint8Array.from(
    buffer.subarray(
      0,
      rows.reduce((end, row) => encodeReadRow(row, buffer, end), 0),
    ),
  );
};

const sealedOf = (contents: MemoryContents, segment: number): SealedSegment => {
  const chunks = contents.chunks.filter((chunk) => chunk.segment === segment);
  const rows = chunks.flatMap((chunk) => decodeReadRows(chunk.rows));
  const times = rows.map(({ atNs }) => atNs);
  return {
    segment,
    count: rows.length,
    dropped: 0,
    fromNs: times.reduce((a, b) => (b < a ? b : a), times[0] ?? 0n),
    toNs: times.reduce((a, b) => (b > a ? b : a), 0n),
    root: chunks.reduce<Uint8Array>((root, chunk, index) => chunkRoot(root, segment, index, chunk.rows), GENESIS),
  };
};

type Reading = Pick<
  KeptJournal,
  | 'read'
  | 'newestSnapshot'
  | 'seqAtTime'
  | 'readReads'
  | 'closedSegments'
  | 'placesOfStream'
  | 'lastSeqOfStream'
  | 'placesOfCall'
  | 'usedBytes'
>;

/** Questions about what is durable. */
const readingOf = (contents: MemoryContents): Reading => {
  const liveOf = (seqs: readonly number[]): JournalRecord[] =>
    seqs.flatMap((seq) => contents.rows[seq - 1]?.record ?? []);
  const placesOfStream: Reading['placesOfStream'] = async (stream) =>
    isInlineStream(stream) ? [] : liveOf(contents.seqsOfStream.get(stream) ?? []);

  return {
    read: async function* (query = {}) {
      let left = query.limit ?? Number.MAX_SAFE_INTEGER;
      for (let seq = query.fromSeq ?? 1; seq <= contents.rows.length && left > 0; seq++) {
        const record = contents.rows[seq - 1]?.record;
        if (!record || !matches(query, record)) continue;
        left--;
        yield record;
      }
    },
    newestSnapshot: async (evolverVersion) =>
      contents.snapshots
        .filter((snapshot) => snapshot.evolverVersion === evolverVersion)
        .reduce<Snapshot | null>((a, b) => (a === null || b.seq > a.seq ? b : a), null),
    seqAtTime: async (tNs) => {
      const later = contents.rows.findIndex(({ record }) => record !== null && record.atNs > tNs);
      return later < 0 ? contents.rows.length : later;
    },
    readReads: async function* (query = {}) {
      let left = query.limit ?? Number.MAX_SAFE_INTEGER;
      for (const row of contents.chunks.flatMap((chunk) => decodeReadRows(chunk.rows))) {
        if (left <= 0) return;
        if (row.atNs < (query.fromNs ?? 0n) || (query.toNs !== undefined && row.atNs > query.toNs)) continue;
        left--;
        yield row;
      }
    },
    closedSegments: async () =>
      contents.closed.filter(({ segment }) => contents.chunks.some((chunk) => chunk.segment === segment)),
    placesOfStream,
    lastSeqOfStream: async (stream) => (await placesOfStream(stream)).at(-1)?.seq ?? 0,
    placesOfCall: async (call) => liveOf(contents.seqsOfCall.get(call) ?? []),
    usedBytes: async () => contents.rows.reduce((sum, { record }) => sum + 64 + (record?.body.length ?? 0), 0),
  };
};

/** Opens a journal in memory, on the contents of an earlier one if given. Nothing in it ever rejects but append. */
export const createMemoryJournal = (options: MemoryJournalOptions = {}): MemoryJournal => {
  const contents = options.contents ?? emptyContents();
  const commit = options.commit ?? (async () => {});
  let acceptedSeq = contents.rows.length;
  let openSegment =
    1 + Math.max(0, ...contents.closed.map(({ segment }) => segment), ...contents.chunks.map(({ segment }) => segment));
  let queue: Waiting[] = [];
  let reads: ReadRow[] = [];
  let pumping: Promise<void> | null = null;
  let ended: Error | null = null;
  let tellFailed: (error: Error) => void = () => {};
  const failed = new Promise<Error>((resolve) => {
    tellFailed = resolve;
  });

  const takeReads = (): void => {
    if (reads.length > 0) contents.chunks.push({ segment: openSegment, rows: encodeRows(reads) });
    reads = [];
  };

  const fail = (error: Error, batch: readonly Waiting[]): void => {
    ended = new JournalError('Failed', `The journal takes nothing more since a commit failed: ${error.message}`, {
      cause: error,
    });
    for (const waiting of [...batch, ...queue]) waiting.reject(ended);
    queue = [];
    tellFailed(ended);
  };

  const pump = async (): Promise<void> => {
    while (queue.length > 0) {
      const batch = queue;
      queue = [];
      const records = batch.flatMap((waiting) => waiting.records);
      try {
        await commit(records);
      } catch (thrown) {
        fail(errorOf(thrown), batch);
        return;
      }
      for (const record of records) addRecord(contents, record);
      takeReads();
      for (const waiting of batch) waiting.resolve();
    }
    pumping = null;
  };

  const append = async (records: readonly JournalRecord[]): Promise<void> => {
    if (ended !== null) throw ended;
    records.forEach((record, index) => {
      checkRecord(record, acceptedSeq + 1 + index);
      checkOwnRecord(record);
    });
    if (records.length === 0) return;
    acceptedSeq += records.length;
    const done = new Promise<void>((resolve, reject) => {
      queue.push({ records, resolve, reject });
    });
    pumping ??= pump();
    await done;
  };

  return {
    ...readingOf(contents),
    contents,
    failed,
    append,
    head: () => {
      const seq = contents.rows.length;
      return {
        seq,
        get hash() {
          return hashAt(contents, seq);
        },
      };
    },
    appendRead: (row) => {
      if (ended === null) reads.push(row);
    },
    writeSnapshot: async (snapshot) => {
      if (ended !== null) throw ended;
      contents.snapshots.push(snapshot);
    },
    close: async () => {
      await pumping;
      if (ended === null) takeReads();
      ended ??= new JournalError('Closed', 'The journal is closed.');
    },
    sealReads: async () => {
      takeReads();
      const segments = [...new Set(contents.chunks.map(({ segment }) => segment))];
      openSegment = Math.max(openSegment, ...segments.map((segment) => segment + 1));
      return segments
        .filter((segment) => !contents.closed.some((sealed) => sealed.segment === segment))
        .map((segment) => sealedOf(contents, segment));
    },
  };
};
