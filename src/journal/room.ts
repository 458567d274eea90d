/**
 * The room in a journal's file that nothing is in, and giving it back to the file system while the daemon writes: a few
 * pages at a time, between commits. Long rests between keep the writer free for those who commit.
 */
import { statfsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from './connect.ts';
import { JournalError } from './errors.ts';

export interface JournalRoom {
  /** The database, without its write-ahead log. */
  readonly fileBytes: number;
  /** Pages of it that hold nothing: what is written next goes there first. */
  readonly freeBytes: number;
  /** Some of them can be given back without writing the whole file anew. Files of older scribes can't, until that was done. */
  readonly givesBack: boolean;
}

const AUTO_VACUUM_INCREMENTAL = 2;

export const roomIn = (db: Db): JournalRoom => {
  const pragma = (name: string): number => Number(db.pragma(name, { simple: true }));
  const pageBytes = pragma('page_size');
  return {
    fileBytes: pragma('page_count') * pageBytes,
    freeBytes: pragma('freelist_count') * pageBytes,
    givesBack: pragma('auto_vacuum') === AUTO_VACUUM_INCREMENTAL,
  };
};

export const usedBytesIn = (db: Db): number => {
  const { fileBytes, freeBytes } = roomIn(db);
  return fileBytes - freeBytes;
};

const MEBIBYTE = 1024 * 1024;

/** Throws JournalError Unsafe where the file system of a directory has less room than something takes. */
export const refuseWithoutRoom = (what: string, dir: string, neededBytes: number): void => {
  const { bavail, bsize } = statfsSync(dir);
  const freeBytes = bavail * bsize;
  if (freeBytes >= neededBytes) return;
  const mebibytes = (count: number): string => (count / MEBIBYTE).toFixed(1);
  throw new JournalError(
    'Unsafe',
    `${what} takes ${mebibytes(neededBytes)} MiB, and the file system of ${dir} has ${mebibytes(freeBytes)} MiB free: make room first.`,
  );
};

/** A commit that comes meanwhile waits for these: a few milliseconds, its own sync aside. */
const PAGES_PER_STEP = 64;
/** The writer's thread is taken for at most a tenth of the time. */
const REST_PER_WORK = 9;

/**
 * Gives back for at most `forMs`, or until nothing is left to give. `step` gives back at most so many pages, between
 * commits. Resolves with what there is then.
 */
export const giveBackFor = async (
  forMs: number,
  room: () => JournalRoom,
  step: (pagesMax: number) => Promise<unknown>,
): Promise<JournalRoom> => {
  const startedMs = performance.now();
  for (;;) {
    const now = room();
    if (!now.givesBack || now.freeBytes === 0 || performance.now() - startedMs >= forMs) return now;
    const stepMs = performance.now();
    await step(PAGES_PER_STEP);
    await sleep(REST_PER_WORK * (performance.now() - stepMs));
  }
};
