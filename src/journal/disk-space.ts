/**
 * Room on the journal's file system: says whether there is enough to take on more work, so that a full disk is
 * refused at the door and never met in a commit (C7), and keeps a file of real blocks that is given back when it gets
 * tight, so that stopping and removing still can be written down. Looks once a second: no kernel interface tells.
 */
import { randomBytes } from 'node:crypto';
import { open, rm, stat, statfs, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';

const mebibyte = 1024 * 1024;
const lookEveryMs = 1000;

export interface DiskGuardOptions {
  /** The reserve file; its directory's file system is what is watched. */
  readonly reservePath: string;
  readonly reserveBytes?: number;
  /** Below this the disk counts as full. */
  readonly minFreeBytes?: number;
  /** Below this the reserve is given back. */
  readonly tightBytes?: number;
  /** Called when the disk becomes full and when it no longer is. */
  readonly onChange?: (full: boolean) => void;
}

export interface DiskGuard {
  /** What the last look saw; at most a second old. */
  readonly isFull: () => boolean;
  /** Looks now, gives the reserve back or fills it again, and says whether the disk is full. */
  readonly look: () => Promise<boolean>;
  readonly close: () => Promise<void>;
}

const freeBytes = async (dir: string): Promise<number> => {
  const { bavail, bsize } = await statfs(dir);
  return bavail * bsize;
};

const sizeOf = async (path: string): Promise<number> => {
  try {
    return (await stat(path)).size;
  } catch {
    return 0;
  }
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
  const { reservePath, reserveBytes = 32 * mebibyte, onChange = () => {} } = options;
  const { minFreeBytes = 64 * mebibyte, tightBytes = 16 * mebibyte } = options;
  const dir = dirname(reservePath);
  let full = false;
  let reserved = (await sizeOf(reservePath)) >= reserveBytes;
  let looking: Promise<boolean> | null = null;

  const giveBack = async (): Promise<void> => {
    reserved = false;
    await truncate(reservePath, 0);
  };

  const fill = async (): Promise<void> => {
    try {
      await fillReserve(reservePath, reserveBytes);
      reserved = true;
    } catch {
      // Somebody else was faster in taking the room: half a reserve is none, and not worth keeping from them.
      await rm(reservePath, { force: true });
    }
  };

  const settle = (nowFull: boolean): boolean => {
    if (nowFull !== full) {
      full = nowFull;
      onChange(full);
    }
    return full;
  };

  const lookOnce = async (): Promise<boolean> => {
    try {
      const free = await freeBytes(dir);
      if (reserved && free < tightBytes) await giveBack();
      else if (!reserved && free >= minFreeBytes + reserveBytes) await fill();
      return settle(free < minFreeBytes);
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
    close: async () => {
      clearInterval(timer);
      await looking;
    },
  };
};
