/**
 * Snapshots on disk: writing one (and dropping those it makes superfluous: the newest serve starts, a few older ones
 * serve whoever asks for a past state) and reading the newest that is whole and of this chain. A snapshot is a shortcut,
 * never the truth: a bad one is passed over.
 */
import type { Db } from './connect.ts';
import { GENESIS, sha256 } from './encoding.ts';
import type { Snapshot } from './types.ts';

/** Of the evolvers in use: should the newest be bad, the one before still saves most of the fold. */
const newestKept = 2;
/** Those before them are kept so far apart that any past state is a short fold away. */
export const KEPT_EVERY_RECORDS = 40_000;
/** What a snapshot may cost for each record since the one kept before it: a large state is kept less often. */
const BYTES_PER_RECORD_MAX = 100;

/** A snapshot by the record that it is taken after, and what its state takes. */
export interface KeptSnapshot {
  readonly seq: number;
  readonly sizeBytes: number;
}

/** How many records apart snapshots of this size are kept. */
export const keptApart = (sizeBytes: number): number =>
  Math.max(KEPT_EVERY_RECORDS, Math.ceil(sizeBytes / BYTES_PER_RECORD_MAX));

/** Which snapshots of one version can go, given all of them in order. */
export const superfluousSnapshots = (snapshots: readonly KeptSnapshot[]): number[] => {
  const gone: number[] = [];
  let lastSeq = 0;
  for (const { seq, sizeBytes } of snapshots.slice(0, -newestKept)) {
    if (seq - lastSeq >= keptApart(sizeBytes)) lastSeq = seq;
    else gone.push(seq);
  }
  return gone;
};

/** What a snapshot's state_hash is taken over. */
export const snapshotHash = (
  seq: number,
  evolverVersion: number,
  recordHash: Uint8Array,
  state: Uint8Array,
): Buffer => {
  const numbers = Buffer.alloc(16);
  numbers.writeBigUInt64BE(BigInt(seq), 0);
  numbers.writeBigUInt64BE(BigInt(evolverVersion), 8);
  return sha256(Buffer.concat([numbers, recordHash, state]));
};

export interface SnapshotRow {
  readonly seq: number;
  readonly evolver_version: number;
  readonly record_hash: Buffer;
  readonly state_hash: Buffer;
  readonly state: Buffer;
}

/** Whether the row is what was written, and stands on the record that this chain has at its seq. */
export const isWholeSnapshot = (row: SnapshotRow, recordHash: Uint8Array | null | undefined): boolean =>
  snapshotHash(row.seq, row.evolver_version, row.record_hash, row.state).equals(row.state_hash) &&
  (row.seq === 0 || recordHash !== undefined) &&
  (!recordHash || row.record_hash.equals(GENESIS) || row.record_hash.equals(recordHash));

export interface SnapshotTable {
  /** Within a transaction with the guard up. Writing the same snapshot again changes nothing. */
  readonly write: (seq: number, evolverVersion: number, state: Uint8Array) => void;
  /**
   * Drops the snapshots before `seq`. What is pruned up to there may have been alive in one of them, and the records
   * that end it are gone: such a snapshot and what follows it no longer fold to the live state. Guard up.
   */
  readonly dropBefore: (seq: number) => void;
}

export const createSnapshotTable = (db: Db): SnapshotTable => {
  const hashAt = db.prepare<[number], Buffer | null>('SELECT hash FROM records WHERE seq = ?').pluck();
  const exists = db
    .prepare<[number, number], number>('SELECT 1 FROM snapshots WHERE seq = ? AND evolver_version = ?')
    .pluck();
  const insert = db.prepare(
    'INSERT INTO snapshots (seq, evolver_version, record_hash, state_hash, state) VALUES (?, ?, ?, ?, ?)',
  );
  const dropOne = db.prepare('DELETE FROM snapshots WHERE evolver_version = ? AND seq = ?');
  const dropOthers = db.prepare(
    `DELETE FROM snapshots WHERE evolver_version <> :version AND seq <
       (SELECT max(seq) FROM snapshots AS newer WHERE newer.evolver_version = snapshots.evolver_version)`,
  );
  const dropBefore = db.prepare('DELETE FROM snapshots WHERE seq < ?');
  return {
    dropBefore: (seq) => {
      dropBefore.run(seq);
    },
    write: (seq, evolverVersion, state) => {
      if (exists.get(seq, evolverVersion) === 1) return;
      // A pruned record has no hash of its own left; the snapshot then stands for itself.
      const recordHash = hashAt.get(seq) ?? GENESIS;
      insert.run(seq, evolverVersion, recordHash, snapshotHash(seq, evolverVersion, recordHash, state), state);
      for (const gone of superfluousSnapshots(readKeptSnapshots(db, evolverVersion))) dropOne.run(evolverVersion, gone);
      dropOthers.run({ version: evolverVersion });
    },
  };
};

/** The newest whole snapshot of this evolver version, not later than `throughSeq`; null when there is none. */
export const readNewestSnapshot = (
  db: Db,
  evolverVersion: number,
  throughSeq: number = Number.MAX_SAFE_INTEGER,
): Snapshot | null => {
  const rows = db
    .prepare<[number, number], SnapshotRow>(
      'SELECT * FROM snapshots WHERE evolver_version = ? AND seq <= ? ORDER BY seq DESC',
    )
    .iterate(evolverVersion, throughSeq);
  const hashAt = db.prepare<[number], Buffer | null>('SELECT hash FROM records WHERE seq = ?').pluck();
  for (const row of rows) {
    if (isWholeSnapshot(row, hashAt.get(row.seq))) return { seq: row.seq, evolverVersion, state: row.state.toString() };
  }
  return null;
};

/** All snapshots of this evolver version, in order; their states are not read. */
export const readKeptSnapshots = (db: Db, evolverVersion: number): KeptSnapshot[] =>
  db
    .prepare<[number], KeptSnapshot>(
      'SELECT seq, length(state) AS sizeBytes FROM snapshots WHERE evolver_version = ? ORDER BY seq',
    )
    .all(evolverVersion);
