/**
 * Counts to a FIFO, `counter.ts <fifo> <lines> <lines per second>`: lines of the bare number. Holds a read end as a
 * shim does, and blocks when nobody reads. Says how long its longest wait for a write was when it is done.
 */
import { constants, openSync, writeSync } from 'node:fs';

const [fifo = '', lines = '', perSecond = ''] = process.argv.slice(2);
const fd = openSync(fifo, constants.O_RDWR);
const total = Number(lines);
const startedMs = performance.now();
let next = 0;
let longestMs = 0;

const write = (): void => {
  const due = Math.min(total, Math.floor(((performance.now() - startedMs) / 1000) * Number(perSecond)));
  for (; next < due; next += 1) {
    const beforeMs = performance.now();
    writeSync(fd, `${next}\n`);
    longestMs = Math.max(longestMs, performance.now() - beforeMs);
  }
  if (next < total) {
    setTimeout(write, 2);
    return;
  }
  process.stdout.write(`counted, longest write ${Math.round(longestMs)} ms\n`);
};

write();
