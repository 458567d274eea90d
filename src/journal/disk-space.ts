/**
 * Room on the journal's file system: says whether there is enough to take on more work, so that a full disk is
 * refused before it is decided about (C7), and keeps a file of real blocks, the reserve, that is given up when it gets tight or when
 * a commit finds no room at all, so that stopping and removing still can be written down. Looks once a second: no
 * kernel interface tells.
 */
import { randomBytes } from 'node:crypto';
import { statfsSync, statSync, truncateSync } from 'node:fs';
import { open, rm, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

const mebibyte = 1024 * 1024;
const lookEveryMs = 1000;
/** With less than this the next commit may fail. */
const tightBytesDefault = 16 * mebibyte;

export interface DiskGuardOptions {
  /** The reserve file; its directory's file system is what is watched. */
  readonly reservePath: string;
  readonly reserveBytes: number;
  /** Below this the disk counts as full; and, once the reserve was given up, until there is room for that too. */
  readonly minFreeBytes: number;
  /** Below this the reserve is given up. */
  readonly tightBytes?: number;
  /** Called when the disk becomes full and when it no longer is. */
  readonly onChange?: (full: boolean, freeBytes: number) => void;
}

export interface DiskGuard {
  /** What the last look saw; at most a second old. */
  readonly isFull: () => boolean;
  /** Looks now, gives the reserve up or fills it again, and says whether the disk is full. */
  readonly look: () => Promise<boolean>;
  /** A commit found no room: the disk is full from now on, whatever the last look saw. */
  readonly noteFull: () => void;
  readonly close: () => Promise<void>;
}

const sizeOf = async (path: string): Promise<number | null> => {
  try {
    return (await stat(path)).size;
  } catch {
    return null;
  }
};

/** Gives the room back to the file system; the empty file stays for a sign. False when there is nothing to give. */
export const giveUpReserve = (path: string): boolean => {
  try {
    if (statSync(path).size === 0) return false;
    truncateSync(path, 0);
    return true;
  } catch {
    return false;
  }
};

/** For a start, when nobody watches yet. */
export const giveUpReserveIfTight = (path: string): void => {
  const { bavail, bsize } = statfsSync(dirname(path));
  if (bavail * bsize < tightBytesDefault) giveUpReserve(path);
};

/** Random bytes, so that no file system stores them as nothing. */
const fillReserve = async (path: string, sizeBytes: number): Promise<void> => {
  const block = randomBytes(mebibyte);
  const file = await open(path, 'w', 0o600);
  try {
    for (let written = 0; written < sizeBytes; written += mebibyte) {
      await file.write(block, 0, Math.min(mebibyte, sizeBytes - written));
    }
    await file.sync();
  } finally {
    await file.close();
  }
};

/** Starts watching; the first look is done when this resolves. A file system that can't be asked counts as full. */
export const createDiskGuard = async (options: DiskGuardOptions): Promise<DiskGuard> => {
  const { reservePath, reserveBytes, minFreeBytes, onChange = () => {} } = options;
  const tightBytes = options.tightBytes ?? Math.min(tightBytesDefault, reserveBytes / 4);
  const dir = dirname(reservePath);
  let full = false;
  let freeBytes = 0;
  let looking: Promise<boolean> | null = null;

  const fill = async (): Promise<void> => {
    try {
      await fillReserve(reservePath, reserveBytes);
    } catch {
      // Somebody else was faster in taking the room: half a reserve is none, and not worth keeping from them.
      if (!giveUpReserve(reservePath)) await rm(reservePath, { force: true });
    }
  };

  const settle = (nowFull: boolean): boolean => {
    if (nowFull !== full) {
      full = nowFull;
      onChange(full, freeBytes);
    }
    return full;
  };

  const lookOnce = async (): Promise<boolean> => {
    try {
      const { bavail, bsize } = await statfs(dir);
      freeBytes = bavail * bsize;
      const reserved = await sizeOf(reservePath);
      const canFill = freeBytes >= minFreeBytes + reserveBytes;
      if ((reserved ?? 0) >= reserveBytes) {
        if (freeBytes < tightBytes) giveUpReserve(reservePath);
        return settle(freeBytes < minFreeBytes);
      }
      if (canFill) await fill();
      // What was given up is for stopping and removing only.
      const isSpent = reserved === 0 && !canFill;
      return settle(isSpent || freeBytes < minFreeBytes);
    } catch {
      return settle(true);
    } finally {
      looking = null;
    }
  };

  const look = async (): Promise<boolean> => {
    // One that has begun may have seen the disk as it was before whoever asks now had changed it.
    if (looking !== null) await looking;
    looking ??= lookOnce();
    return looking;
  };

  await look();
  const timer = setInterval(() => {
    if (looking === null) void look();
  }, lookEveryMs).unref();
  return {
    isFull: () => full,
    look,
    noteFull: () => void settle(true),
    close: async () => {
      clearInterval(timer);
      await looking;
    },
  };
};
