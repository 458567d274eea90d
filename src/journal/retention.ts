/**
 * How long things are kept (C10, C11): read segments, calls of classes of their own, and everything about objects that
 * are gone, each for its time, and all of it capped by size. Decides what goes and has it recorded; the journal takes
 * it away in the transaction that commits the record. Knows streams and calls, never what they are about: whoever
 * runs it says which streams are closed and which calls are probes.
 */
import { prunedRecord, readsClosedRecord } from './own-records.ts';
import { rangesOfSeqs } from './ranges.ts';
import type { JournalRecord, KeptJournal, RecordOwn, RecordPlace } from './types.ts';

export interface RetentionPolicy {
  /** Rows of read calls. */
  readonly readsNs: bigint;
  /** Calls by their class, with all that was done on their behalf: for what is no object's life. */
  readonly calls: Readonly<Record<string, CallPolicy>>;
  /** Closed streams, counted from their last record. */
  readonly restNs: bigint;
  /** Above this, times are shortened until the journal is small enough or nothing is left to prune. */
  readonly maxBytes: number;
}

export interface CallPolicy {
  readonly keptNs: bigint;
  /** Only those go that did nothing to any object. */
  readonly isAlone?: true;
}

export interface RetentionOptions {
  readonly journal: KeptJournal;
  /** Numbers and appends the journal's own records. */
  readonly record: RecordOwn;
  readonly policy: RetentionPolicy;
  /** True for streams on which nothing will ever be recorded again. */
  readonly isClosed: (stream: string) => boolean;
  /**
   * Told of each record that is old enough, in order: the seqs of what is over with it of streams that are never closed, and
   * leaves nothing behind where all of it goes.
   */
  readonly overWith: (record: JournalRecord) => readonly number[];
  /** The class of a call that is kept for a time of its own, by a record of it that tells; null: none, or not that record. */
  readonly classOf: (record: JournalRecord) => string | null;
}

export interface RetentionReport {
  readonly closedSegments: number;
  readonly droppedSegments: number;
  readonly prunedRecords: number;
  /** Part of the policy's times that was left when the size fitted; 1 unless the cap was passed. */
  readonly share: number;
}

export interface Retention {
  /** One round. Runs until all is pruned that may be; only one at a time. */
  readonly run: (nowNs: bigint) => Promise<RetentionReport>;
}

/** Rows that one record prunes: bounds the time for which the writer does nothing else. */
const batchRecords = 2000;
/** How the times are shortened while the journal is too large. */
const shares = [1, 0.5, 0.25, 0.125, 0.0625, 0] as const;

const reasonOf = (share: number, rule: string): string => (share < 1 ? `${rule}, journal too large` : rule);

/** Collects what is to be pruned and has it recorded a batch at a time, oldest first. */
const createPruner = (record: RecordOwn, reason: string) => {
  let seqs = new Set<number>();
  let pruned = 0;
  const flush = async (): Promise<void> => {
    if (seqs.size === 0) return;
    const ranges = rangesOfSeqs([...seqs].sort((a, b) => a - b));
    pruned += seqs.size;
    seqs = new Set();
    await record(prunedRecord({ reason, seqs: ranges, segments: [] }));
  };
  return {
    /** Places that belong together stay in one batch, unless they alone are more than one. */
    add: async (places: readonly RecordPlace[]): Promise<void> => {
      const added = places.filter(({ seq }) => !seqs.has(seq));
      if (seqs.size > 0 && seqs.size + added.length > batchRecords && added.length > 0) await flush();
      for (const { seq } of added) {
        seqs.add(seq);
        if (seqs.size >= 2 * batchRecords) await flush();
      }
    },
    has: (seq: number): boolean => seqs.has(seq),
    flush,
    pruned: (): number => pruned,
  };
};

type Pruner = ReturnType<typeof createPruner>;
type Visit = (pruner: Pruner, visited: JournalRecord, cutoffSeq: number) => Promise<void>;

export const createRetention = (options: RetentionOptions): Retention => {
  const { journal, record, policy, isClosed, overWith, classOf } = options;
  /** Up to where each rule has looked: what it passed over is visited again when its stream's end comes by. */
  const looked = new Map<string, number>();
  let running: Promise<RetentionReport> | null = null;

  const closeSegments = async (): Promise<number> => {
    const sealed = await journal.sealReads();
    for (const segment of sealed) await record(readsClosedRecord(segment));
    return sealed.length;
  };

  const dropSegments = async (cutoffNs: bigint, share: number): Promise<number> => {
    const old = (await journal.closedSegments()).filter(({ toNs }) => toNs < cutoffNs).map(({ segment }) => segment);
    if (old.length > 0) await record(prunedRecord({ reason: reasonOf(share, 'reads'), seqs: [], segments: old }));
    return old.length;
  };

  /** The records of a call's own stream, once nothing but `stream` is left of what it did. */
  const endedCall = async (pruner: Pruner, call: number, stream: string): Promise<readonly RecordPlace[]> => {
    const places = await journal.placesOfCall(call);
    const own = places.find(({ seq }) => seq === call)?.stream;
    if (own === undefined || !isClosed(own)) return [];
    const left = places.filter((place) => place.stream !== own && place.stream !== stream && !pruner.has(place.seq));
    return left.length > 0 ? [] : places.filter((place) => place.stream === own);
  };

  const pruneCall =
    (name: string, { isAlone }: CallPolicy): Visit =>
    async (pruner, visited) => {
      if (visited.call === null || classOf(visited) !== name || !isClosed(visited.stream)) return;
      const places = await journal.placesOfCall(visited.call);
      // It is about one object. Where it has led to more, after a fault, it goes with the last of them.
      if (new Set(places.map(({ stream }) => stream)).size <= (isAlone === true ? 1 : 2)) await pruner.add(places);
    };

  const pruneStream: Visit = async (pruner, visited, cutoffSeq) => {
    const { stream, seq, call } = visited;
    await pruner.add(overWith(visited).map((over) => ({ seq: over, stream, call: null })));
    if (pruner.has(seq) || !isClosed(stream)) return;
    // A call that did nothing but fail; others go with the last object that they touched.
    if (call === seq) return pruner.add(await endedCall(pruner, seq, stream));
    // By its end alone: a container that was probed for months has a hundred thousand records, and each old one comes by here.
    const lastSeq = await journal.lastSeqOfStream(stream);
    if (lastSeq === 0 || lastSeq > cutoffSeq) return;
    const places = await journal.placesOfStream(stream);
    const calls = new Set(places.flatMap((place) => place.call ?? []));
    const ended = await Promise.all([...calls].map(async (one) => endedCall(pruner, one, stream)));
    await pruner.add([...ended.flat(), ...places].sort((a, b) => a.seq - b.seq));
  };

  const pruneOlder = async (rule: string, cutoffNs: bigint, share: number, visit: Visit): Promise<number> => {
    const cutoffSeq = await journal.seqAtTime(cutoffNs);
    const lookedSeq = looked.get(rule) ?? 0;
    if (cutoffSeq <= lookedSeq) return 0;
    const pruner = createPruner(record, reasonOf(share, rule));
    for await (const visited of journal.read({ fromSeq: lookedSeq + 1, toSeq: cutoffSeq })) {
      await visit(pruner, visited, cutoffSeq);
    }
    await pruner.flush();
    looked.set(rule, cutoffSeq);
    return pruner.pruned();
  };

  const runOnce = async (nowNs: bigint): Promise<RetentionReport> => {
    const closedSegments = await closeSegments();
    let [droppedSegments, prunedRecords] = [0, 0];
    for (const share of shares) {
      const cutoff = (keptNs: bigint): bigint => nowNs - (keptNs * BigInt(share * 10_000)) / 10_000n;
      droppedSegments += await dropSegments(cutoff(policy.readsNs), share);
      for (const [name, kept] of Object.entries(policy.calls))
        prunedRecords += await pruneOlder(name, cutoff(kept.keptNs), share, pruneCall(name, kept));
      prunedRecords += await pruneOlder('rest', cutoff(policy.restNs), share, pruneStream);
      const fits = (await journal.usedBytes()) <= policy.maxBytes;
      if (fits || share === 0) return { closedSegments, droppedSegments, prunedRecords, share };
    }
    return { closedSegments, droppedSegments, prunedRecords, share: 0 };
  };

  return {
    run: async (nowNs) => {
      running ??= runOnce(nowNs).finally(() => {
        running = null;
      });
      return running;
    },
  };
};
