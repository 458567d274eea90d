/**
 * Heads that a journal does not contain: signed proofs that another journal was here, or a longer one. They are kept
 * beside it for ever, under names of their own, so that the journal's next head overwrites none of them. Says what is
 * there; whether it matters is for whoever opens the journal.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync } from 'node:fs';
import { basename } from 'node:path';
import { type Checkpoint, freePath, readHeadFile } from './checkpoints.ts';
import type { Db } from './connect.ts';
import { chainHash, GENESIS } from './encoding.ts';

export interface LostHead {
  /** Name of the file that is kept. */
  readonly file: string;
  /** SHA-256 of the file, in hex: tells it from others that had its name. */
  readonly digest: string;
  /** The last record that it knows; null when it can't be read. */
  readonly seq: number | null;
}

const KEPT = 'lost';

interface Link {
  readonly seq: number;
  readonly hash: Buffer;
}

/** The chain's hash after a record. One that was pruned keeps only what it is computed from, beginning at the last that is known. */
const hashAt = (db: Db, seq: number): Buffer | undefined => {
  const known = db
    .prepare<[number, number], Link>(
      `SELECT * FROM (SELECT seq, hash FROM records WHERE seq <= ? AND hash IS NOT NULL ORDER BY seq DESC LIMIT 1)
       UNION ALL
       SELECT * FROM (SELECT seq, hash FROM checkpoints WHERE seq <= ? ORDER BY seq DESC LIMIT 1)
       ORDER BY seq DESC LIMIT 1`,
    )
    .get(seq, seq) ?? { seq: 0, hash: GENESIS };
  const pruned = db
    .prepare<[number, number], Buffer>('SELECT body_hash FROM records WHERE seq > ? AND seq <= ? ORDER BY seq')
    .pluck()
    .all(known.seq, seq);
  if (pruned.length !== seq - known.seq) return undefined;
  return pruned.reduce((hash, body, index) => chainHash(hash, known.seq + 1 + index, body), Buffer.from(known.hash));
};

/** Why the checkpoint beside the journal is none of its own; null: it is, or there is none. */
export const lossOf = (db: Db, path: string, beside: Checkpoint | string | null, endSeq: number): string | null => {
  if (beside === null || typeof beside === 'string') return beside;
  if (beside.seq > endSeq)
    return `The journal was put back or cut: ${path} knows record ${beside.seq}, it ends at ${endSeq}.`;
  if (beside.seq === 0 || hashAt(db, beside.seq)?.equals(beside.hash) === true) return null;
  return `The journal was put back and written on: ${path} has another hash of record ${beside.seq}.`;
};

/** Takes the head, or the note that was written along with it, out of the way of the next one. */
export const keepLostHead = (path: string): void => {
  if (existsSync(path)) renameSync(path, freePath(path, KEPT));
};

/** Those that are kept beside a journal, oldest first. */
export const lostHeads = (path: string): LostHead[] => {
  const found: LostHead[] = [];
  for (let number = 1; ; number++) {
    const kept = `${path}.${KEPT}-${number}`;
    if (!existsSync(kept)) return found;
    const head = readHeadFile(kept);
    found.push({
      file: basename(kept),
      digest: createHash('sha256').update(readFileSync(kept)).digest('hex'),
      seq: head === null || typeof head === 'string' ? null : head.seq,
    });
  }
};
