/** The thread that reads a file into the kernel's memory, and keeps nothing of it; started by read-ahead.ts. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import type { ReadAheadTask } from './read-ahead.ts';

const STEP_BYTES = 1024 * 1024;

const { path, from } = workerData as ReadAheadTask;
const fd = openSync(path, 'r');
try {
  const buffer = Buffer.alloc(STEP_BYTES);
  const steps = Math.ceil(fstatSync(fd).size / STEP_BYTES);
  for (let step = 0; step < steps; step += 1) {
    const place = from === 'start' ? step : steps - 1 - step;
    readSync(fd, buffer, 0, STEP_BYTES, place * STEP_BYTES);
  }
} finally {
  closeSync(fd);
}
