/**
 * What a journal is to its users: records in, records out. The SQLite journal and its in-memory twin both are
 * a Journal and pass the same contract suite. A journal knows sequence numbers, streams and hashes; it knows
 * nothing of pods, containers or what a record's body means.
 */

/** Of a record's body; longer ones are refused. */
export const BODY_BYTES_MAX = 16 * 1024 * 1024;

/** One row of `records` (journal format v1), without the hashes, which the journal computes. */
export interface JournalRecord {
  /** Gapless, from 1. Assigned by the engine in the turn that decided it; the journal refuses any other number. */
  readonly seq: number;
  /** Wall clock, ns since the epoch. */
  readonly atNs: bigint;
  /** Monotonic clock, ns since an arbitrary point of this boot. */
  readonly monoNs: bigint;
  /** The kernel's boot id. */
  readonly boot: string;
  readonly type: string;
  readonly v: number;
  /** sandbox/ID, container/ID, image/ID, call/ID or node. */
  readonly stream: string;
  /** seq of the record that led to this one; null for what came from outside. */
  readonly cause: number | null;
  /** seq of the call.received on whose behalf this was recorded; null when none. */
  readonly call: number | null;
  /** JSON text, never empty. 64-bit integers are decimal strings. A pruned record is not read at all: its seq is skipped. */
  readonly body: string;
}

/** One answered read call (List, Status, …), kept compactly and committed lazily (C10). */
export interface ReadRow {
  readonly atNs: bigint;
  readonly method: string;
  readonly code: number;
  readonly durationNs: bigint;
  readonly callerPid: number;
  readonly callerUid: number;
  /** A short hint of what was asked for: an id, a filter; '' for everything. */
  readonly subject: string;
}

export interface ReadQuery {
  readonly fromSeq?: number;
  readonly toSeq?: number;
  readonly types?: readonly string[];
  readonly streams?: readonly string[];
  /** Records on behalf of this call.received, itself included. */
  readonly call?: number;
  readonly fromNs?: bigint;
  readonly toNs?: bigint;
  readonly limit?: number;
}

export interface Snapshot {
  /** State after the record with this seq. */
  readonly seq: number;
  /** Version of the evolvers that folded it; a snapshot of another version is ignored. */
  readonly evolverVersion: number;
  readonly state: string;
}

export interface JournalHead {
  readonly seq: number;
  readonly hash: Uint8Array;
}

export interface Journal {
  /** The last durable record. */
  readonly head: () => JournalHead;
  /**
   * Appends records in order. Resolves once they are on disk (fsync). Calls that arrive while a commit is under way
   * share the next one. Rejects for everybody when a commit fails; the journal takes nothing more after that (C7).
   * `mayWait`: nobody waits for these by themselves, so they may go with what comes within some milliseconds.
   */
  readonly append: (records: readonly JournalRecord[], mayWait?: boolean) => Promise<void>;
  /** Notes a read call; never waits, committed with the next durable batch or within a second. */
  readonly appendRead: (row: ReadRow) => void;
  /** Records in order of seq, read in short transactions and pages. */
  readonly read: (query?: ReadQuery) => AsyncIterable<JournalRecord>;
  readonly writeSnapshot: (snapshot: Snapshot) => Promise<void>;
  readonly newestSnapshot: (evolverVersion: number) => Promise<Snapshot | null>;
  /** Settles with the error that ended the writer; never settles in a healthy life. */
  readonly failed: Promise<Error>;
  /** Commits what is queued, checkpoints and closes. */
  readonly close: () => Promise<void>;
}

/** Sequence numbers from `first` to `last`, both included. */
export type SeqRange = readonly [first: number, last: number];

/** A read segment that takes no more rows: what its `reads.closed` record says of it. */
export interface SealedSegment {
  readonly segment: number;
  readonly count: number;
  /** Rows that were refused because the writer could not keep up. */
  readonly dropped: number;
  readonly fromNs: bigint;
  readonly toNs: bigint;
  /** SHA-256 chain over the segment's chunks. */
  readonly root: Uint8Array;
}

/**
 * A record that the journal asks for itself (reads.closed, journal.pruned). Only the engine assigns seq, so the
 * journal hands it out and whoever numbers records appends it unchanged; the journal acts when it commits it.
 */
export interface OwnRecord {
  readonly type: string;
  readonly v: number;
  readonly stream: string;
  readonly body: string;
}

/** Appends one of the journal's own records; resolves once it is durable. */
export type RecordOwn = (record: OwnRecord) => Promise<void>;

/** Where a record is: all that pruning needs to know of it. */
export type RecordPlace = Pick<JournalRecord, 'seq' | 'stream' | 'call'>;

export interface ReadsQuery {
  readonly fromNs?: bigint;
  readonly toNs?: bigint;
  readonly limit?: number;
}

/** The journal as those see it who keep house in it: close read segments, prune, ask for a moment in time. */
export interface KeptJournal extends Journal {
  /** The greatest seq under the running maximum of `at` (C14): 0 when every record is later than `tNs`. */
  readonly seqAtTime: (tNs: bigint) => Promise<number>;
  /** Rows of read calls, oldest first, those of dropped segments aside. */
  readonly readReads: (query?: ReadsQuery) => AsyncIterable<ReadRow>;
  /** Ends the open segment and names all that still lack their `reads.closed` record. Safe to call again. */
  readonly sealReads: () => Promise<readonly SealedSegment[]>;
  /** Recorded segments that are still there, oldest first. */
  readonly closedSegments: () => Promise<readonly SealedSegment[]>;
  /** The unpruned records of a stream, in order; of a call's own stream (call/…) ask by the call instead. */
  readonly placesOfStream: (stream: string) => Promise<readonly RecordPlace[]>;
  /** The seq of the last of them; 0: there is none. Costs the same however many there are. */
  readonly lastSeqOfStream: (stream: string) => Promise<number>;
  /** The unpruned records with this `call`, in order. */
  readonly placesOfCall: (call: number) => Promise<readonly RecordPlace[]>;
  /** Bytes in use, free pages aside: what the size cap is held against. */
  readonly usedBytes: () => Promise<number>;
}

/**
 * How a state is folded, for whoever folds it away from the daemon's own thread: a module exports one of these, and
 * is named by its URL. All of it is pure.
 */
export interface StateFold<State> {
  readonly evolverVersion: number;
  readonly initial: () => State;
  /**
   * Changes the state in place; changes nothing for a type or an object it doesn't know. A throw passes the record
   * over, so it must come before anything was changed.
   */
  readonly evolve: (state: State, record: JournalRecord) => void;
  /** Seqs of records that change nothing any more once all of these, which follow one another, are folded. */
  readonly settledIn: (records: readonly JournalRecord[]) => ReadonlySet<number>;
  readonly write: (state: State) => string;
  readonly read: (text: string) => State;
}

/** How a thread is told which state to fold, since a function can't be handed to it: by the module that exports the StateFold. */
export interface FoldModule {
  /** URL of the module, and the name that the fold has there. */
  readonly moduleUrl: string;
  readonly exportName: string;
}
