/**
 * Read calls on disk: chunks of the open segment, and which segments are closed. Runs in the writer's thread, within
 * the writer's transaction. A segment ends when it is sealed or full; the next chunk then starts another one.
 */
import type { Db } from './connect.ts';
import { chunkRoot, GENESIS } from './encoding.ts';
import { decodeReadRows } from './read-rows.ts';
import type { SealedSegment } from './types.ts';

/** Chunks of one segment have ids from segment * this on. */
export const CHUNKS_PER_SEGMENT = 2 ** 24;

/** A segment that has more is ended by itself: what is dropped whole must not be everything. */
const segmentRowsMax = 1_000_000;

/** Encoded rows, and what is known of them without decoding. */
export interface ReadChunk {
  readonly rows: Uint8Array;
  readonly count: number;
  readonly fromNs: bigint;
  readonly toNs: bigint;
  /** Rows that were refused since the last chunk. */
  readonly dropped: number;
}

export interface ReadTable {
  readonly append: (chunk: ReadChunk) => void;
  readonly seal: () => SealedSegment[];
  /** A `reads.closed` record with this seq is being committed. */
  readonly close: (segment: number, seq: number) => void;
  /** Drops a closed segment's chunks. The guard must be up. */
  readonly drop: (segment: number) => void;
}

interface ChunkRow {
  readonly rows: Buffer;
  readonly root: Buffer;
}

const emptySum = (segment: number): SealedSegment => ({
  segment,
  count: 0,
  dropped: 0,
  fromNs: 2n ** 63n - 1n,
  toNs: 0n,
  root: GENESIS,
});

const addChunk = (sum: SealedSegment, chunk: ReadChunk, root: Uint8Array): SealedSegment => ({
  segment: sum.segment,
  count: sum.count + chunk.count,
  dropped: sum.dropped + chunk.dropped,
  fromNs: chunk.fromNs < sum.fromNs ? chunk.fromNs : sum.fromNs,
  toNs: chunk.toNs > sum.toNs ? chunk.toNs : sum.toNs,
  root,
});

/** A chunk's rows as ReadChunk says of them. */
export const describeChunk = (rows: Uint8Array): ReadChunk => {
  let { fromNs, toNs } = emptySum(0);
  const decoded = decodeReadRows(rows);
  for (const { atNs } of decoded) {
    if (atNs < fromNs) fromNs = atNs;
    if (atNs > toNs) toNs = atNs;
  }
  return { rows, count: decoded.length, fromNs, toNs, dropped: 0 };
};

/** What a segment's chunks add up to, read from disk: for segments that an earlier life left open. */
const sumSegment = (db: Db, segment: number): SealedSegment => {
  const chunks = db
    .prepare<[number, number], ChunkRow>('SELECT rows, root FROM read_chunks WHERE id >= ? AND id < ? ORDER BY id')
    .iterate(segment * CHUNKS_PER_SEGMENT, (segment + 1) * CHUNKS_PER_SEGMENT);
  let sum = emptySum(segment);
  for (const chunk of chunks) sum = addChunk(sum, describeChunk(chunk.rows), chunk.root);
  return sum;
};

/** Segments that have chunks, in order; each is found by one step in the tree, whatever its size. */
export const segmentsWithChunks = (db: Db): number[] => {
  const next = db
    .prepare<[number], number | null>(
      `SELECT min(id) FROM read_chunks WHERE id >= ? AND id <= ${Number.MAX_SAFE_INTEGER}`,
    )
    .pluck();
  const segments: number[] = [];
  for (let from = 0; ; ) {
    const id = next.get(from);
    if (id === null || id === undefined) return segments;
    const segment = Math.floor(id / CHUNKS_PER_SEGMENT);
    segments.push(segment);
    from = (segment + 1) * CHUNKS_PER_SEGMENT;
  }
};

export const createReadTable = (db: Db): ReadTable => {
  const insertChunk = db.prepare('INSERT INTO read_chunks (id, rows, root) VALUES (?, ?, ?)');
  const insertClosed = db.prepare('INSERT INTO read_segments (segment, closed) VALUES (?, ?)');
  const isClosed = db.prepare<[number], number>('SELECT 1 FROM read_segments WHERE segment = ?').pluck();
  const deleteChunks = db.prepare('DELETE FROM read_chunks WHERE id >= ? AND id < ?');
  const lastClosed = db.prepare<[], number | null>('SELECT max(segment) FROM read_segments').pluck().get() ?? 0;
  // Every life of the daemon starts a segment of its own, so that nothing has to be counted at start-up.
  let open = emptySum(1 + Math.max(lastClosed, segmentsWithChunks(db).at(-1) ?? 0));
  let chunks = 0;
  /** Segments of this life that are sealed and not closed yet. */
  const sealed = new Map<number, SealedSegment>();

  const sealOpen = (): void => {
    if (chunks === 0) return;
    sealed.set(open.segment, open);
    open = emptySum(open.segment + 1);
    chunks = 0;
  };

  return {
    append: (chunk) => {
      const root = chunkRoot(open.root, open.segment, chunks, chunk.rows);
      insertChunk.run(open.segment * CHUNKS_PER_SEGMENT + chunks, chunk.rows, root);
      open = addChunk(open, chunk, root);
      chunks++;
      if (open.count >= segmentRowsMax) sealOpen();
    },
    seal: () => {
      sealOpen();
      return segmentsWithChunks(db)
        .filter((segment) => isClosed.get(segment) === undefined)
        .map((segment) => sealed.get(segment) ?? sumSegment(db, segment));
    },
    close: (segment, seq) => {
      if (segment < open.segment && isClosed.get(segment) === undefined) insertClosed.run(segment, seq);
      sealed.delete(segment);
    },
    drop: (segment) => {
      if (isClosed.get(segment) === 1) {
        deleteChunks.run(segment * CHUNKS_PER_SEGMENT, (segment + 1) * CHUNKS_PER_SEGMENT);
      }
    },
  };
};
