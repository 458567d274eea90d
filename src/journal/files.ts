/** The files of a journal, all beside each other, and how a corrupt journal is set aside (C20). */
import { existsSync, renameSync } from 'node:fs';
import { freePath } from './checkpoints.ts';

export interface JournalFiles {
  readonly database: string;
  readonly wal: string;
  readonly lock: string;
  /** Ed25519 private key, PEM, mode 0600. */
  readonly key: string;
  /** The newest signed checkpoint once more. */
  readonly head: string;
}

export const journalFiles = (path: string): JournalFiles => ({
  database: path,
  wal: `${path}-wal`,
  lock: `${path}.lock`,
  key: `${path}.key`,
  head: `${path}.head`,
});

/** What belongs to one chain: the key and the lock outlive it. */
const chainSuffixes = ['', '-wal', '-shm', '.head'] as const;

/**
 * Moves a journal out of the way whole, never overwriting an earlier one, and returns its new path. Nobody may have
 * it open; the caller holds the lock.
 */
export const setAside = (path: string): string => {
  const aside = freePath(path, 'corrupt');
  for (const suffix of chainSuffixes) {
    if (existsSync(`${path}${suffix}`)) renameSync(`${path}${suffix}`, `${aside}${suffix}`);
  }
  return aside;
};
