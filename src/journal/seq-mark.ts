/**
 * How far the journal has come, in a file that is no part of it: written after each commit, so that it never says more than
 * is on the disk, and without being synced, since it is for who starts after a daemon that was killed. Such a daemon may not
 * have signed a head since its last commits, and a journal put back behind it would show nothing of them. It is a hint that
 * anybody who owns the machine can take away: what can't be read or written is none.
 */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';

export interface SeqMark {
  readonly write: (seq: number) => void;
  /** The head beside the journal says as much from now on. */
  readonly remove: () => void;
}

const fileMode = 0o600;
/** As many digits as the largest number has, and the end of the line: what is written over is as long. */
const WIDTH = 16;
const BYTES = WIDTH + 1;

const NO_MARK: SeqMark = { write: () => undefined, remove: () => undefined };

/** What is there already stays until something is written. */
export const openSeqMark = (path: string | null): SeqMark => {
  if (path === null) return NO_MARK;
  let file: number | null = null;
  try {
    file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, fileMode);
    // More than is written over is nobody's of ours.
    if (fstatSync(file).size > BYTES) ftruncateSync(file, BYTES);
  } catch {
    return NO_MARK;
  }
  const close = (): void => {
    if (file !== null) closeSync(file);
    file = null;
  };
  return {
    write: (seq) => {
      if (file === null) return;
      try {
        writeSync(file, `${String(seq).padEnd(WIDTH)}\n`, 0);
      } catch {
        // Its disk is full, say.
        close();
      }
    },
    remove: () => {
      close();
      rmSync(path, { force: true });
    },
  };
};

/** The last record that a daemon which was killed is known to have written; 0 where nothing says so. */
export const readSeqMark = (path: string | null): number => {
  try {
    if (path === null || (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > BYTES) return 0;
    const seq = Number(readFileSync(path, 'latin1'));
    return Number.isSafeInteger(seq) && seq > 0 ? seq : 0;
  } catch {
    return 0;
  }
};
