/**
 * Has a journal that lies on the disk read into memory, on a thread of its own, for whoever is about to look things up all over
 * it: for a page here and a page there the kernel reads nothing ahead, and each waits for the disk. Must not be used where
 * records are read in their order, which the kernel notices by itself.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

/** Which end of the file is looked at first; what is newest lies behind. */
export type FileEnd = 'start' | 'end';

export interface ReadAheadTask {
  readonly path: string;
  readonly from: FileEnd;
}

const mebibyte = 1024 * 1024;
/** What is smaller is read soon enough. */
const SIZE_MIN_BYTES = 32 * mebibyte;
const SAMPLES = 16;
const SAMPLE_BYTES = 512;
/** So many of the samples came from the disk: then most of the file is there. */
const COLD_SAMPLES = 4;

/** Blocks that this process has had read from disks. */
const blocksRead = (): number => process.resourceUsage().fsRead;

/** Whether much of an open file is not in memory. Looks at a few places all over it, which then are. */
const isCold = (fd: number, sizeBytes: number): boolean => {
  const buffer = Buffer.alloc(SAMPLE_BYTES);
  let cold = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const before = blocksRead();
    readSync(fd, buffer, 0, SAMPLE_BYTES, Math.floor((sizeBytes / SAMPLES) * sample));
    if (blocksRead() > before) cold += 1;
  }
  return cold >= COLD_SAMPLES;
};

/** Large enough to be worth it, small enough to stay, and not there yet. */
const isWorthIt = (path: string): boolean => {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    return size >= SIZE_MIN_BYTES && size <= process.availableMemory() / 2 && isCold(fd, size);
  } finally {
    closeSync(fd);
  }
};

/**
 * Whether it was read, all of it. Keeps no process alive, and nobody need wait for it. Where the file cannot be read, whoever
 * reads records says why.
 */
export const readAhead = async (path: string, from: FileEnd): Promise<boolean> => {
  try {
    if (!isWorthIt(path)) return false;
  } catch {
    return false;
  }
  const task: ReadAheadTask = { path, from };
  const worker = new Worker(new URL('./read-ahead-worker.ts', import.meta.url), {
    name: 'scribe read-ahead',
    workerData: task,
  });
  worker.unref();
  return new Promise((resolve) => {
    worker.once('error', () => resolve(false));
    worker.once('exit', (code) => resolve(code === 0));
  });
};
