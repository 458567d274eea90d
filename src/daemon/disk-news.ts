/**
 * A disk that became full, and one that has room again: told in the log, to `scribe doctor` (while it is full, with how often it
 * was), and in the journal, in which the full disk's own record still finds its reserve. Looks at nothing itself:
 * src/journal/disk-space.ts does.
 */
import type { Logger } from 'pino';
import type { Observe } from '../engine/ports.ts';
import type { Findings } from './findings.ts';

export interface DiskNews {
  readonly changed: (full: boolean, freeBytes: number) => void;
  /** From now on changes are records, too; a disk that is full already is one at once. */
  readonly record: (observe: Observe) => void;
}

const MEBIBYTE = 1024 * 1024;

export function createDiskNews(rootDir: string, findings: Findings, log: Logger): DiskNews {
  let pending: (() => void) | null = null;
  let observe: Observe | null = null;
  let timesFull = 0;
  let firstFullAt = '';

  function write(full: boolean, freeBytes: number): void {
    // A daemon that is ending writes nothing more.
    observe?.({ kind: 'NodeNoted', note: { type: full ? 'disk.filled' : 'disk.freed', body: { freeBytes } } }).catch(
      (error: unknown) => log.warn({ error }, 'the state of the disk could not be recorded'),
    );
  }

  return {
    changed(full, freeBytes) {
      const free = `${Math.floor(freeBytes / MEBIBYTE)} MiB free`;
      const at = new Date().toISOString();
      const disk = `The disk of ${rootDir}`;
      if (full) {
        timesFull += 1;
        firstFullAt ||= at;
        log.error({ rootDir, freeBytes }, 'the disk is full: only stopping and removing is taken');
      } else log.info({ rootDir, freeBytes }, 'the disk has room again');
      const before = timesFull > 1 ? `; it was full ${timesFull} times since ${firstFullAt}` : '';
      // What was is for history: a monitor of scribe doctor is to have peace again.
      if (!full) findings.settle(disk);
      else
        findings.add(`${disk} is full since ${at}, with ${free}: only stopping and removing is taken${before}`, disk);
      if (observe === null) pending = full ? () => write(full, freeBytes) : null;
      else write(full, freeBytes);
    },
    record(given) {
      observe = given;
      pending?.();
      pending = null;
    },
  };
}
