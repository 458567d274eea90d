/**
 * A thread that loads SQLite and may be ended at any time. While the native part of SQLite is being loaded on it, ending it, or the
 * process with it, would abort the whole process (SIGABRT): both wait until it is up, a few hundredths of a second.
 */
import { Worker } from 'node:worker_threads';

/** What the thread is given beside its own: it says there that it is up. */
export type IsUp = Int32Array<SharedArrayBuffer>;

/** What is not up by then will not come up. */
const WAIT_MS_MAX = 2_000;

const rising = new Set<IsUp>();

const waitForAll = (): void => {
  const untilMs = performance.now() + WAIT_MS_MAX;
  for (const isUp of rising) Atomics.wait(isUp, 0, 0, Math.max(0, untilMs - performance.now()));
};

/** Called on the thread, once SQLite is loaded. */
export const tellUp = (isUp: IsUp): void => {
  Atomics.store(isUp, 0, 1);
  Atomics.notify(isUp, 0);
};

export interface SqliteThread {
  readonly worker: Worker;
  readonly end: () => void;
}

/** The program finds what it is given in workerData, and under `isUp` whom to tell. */
export const startSqliteThread = (program: URL, name: string, given: object): SqliteThread => {
  const isUp: IsUp = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  if (rising.size === 0) process.once('exit', waitForAll);
  rising.add(isUp);
  const worker = new Worker(program, { name, workerData: { ...given, isUp } });
  const { value } = Atomics.waitAsync(isUp, 0, 0);
  const risen = Promise.resolve(value).then(() => {
    rising.delete(isUp);
    if (rising.size === 0) process.off('exit', waitForAll);
  });
  // One that has ended by itself is waited for no longer.
  worker.once('exit', () => tellUp(isUp));
  return { worker, end: () => void risen.then(() => worker.terminate()) };
};
