/**
 * A thread that loads a package with a native part (SQLite, koffi) and may be ended at any time. While such a part is being loaded on
 * it, ending it, or the process with it, would abort the whole process (SIGABRT): both wait until it is up, a few hundredths of a
 * second.
 */
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** What the thread is given beside its own: it says there that it is up. */
export interface ThreadIsUp {
  readonly isUp: Int32Array<SharedArrayBuffer>;
}

/** What is not up by then will not come up. */
const WAIT_MS_MAX = 2_000;

const rising = new Set<ThreadIsUp>();

const waitForAll = (): void => {
  const untilMs = performance.now() + WAIT_MS_MAX;
  for (const { isUp } of rising) Atomics.wait(isUp, 0, 0, Math.max(0, untilMs - performance.now()));
};

/** Called on the thread, once all that is native is loaded. */
export const tellUp = ({ isUp }: ThreadIsUp): void => {
  Atomics.store(isUp, 0, 1);
  Atomics.notify(isUp, 0);
};

export interface NativeThread {
  readonly worker: Worker;
  /** Resolves when it has ended, which keeps the process until then. */
  readonly end: () => Promise<void>;
}

/** The program finds what it is given in workerData, and there whom to tell. */
export const startNativeThread = (
  program: URL,
  given: object | null,
  options: Omit<WorkerOptions, 'workerData'> = {},
): NativeThread => {
  const up: ThreadIsUp = { isUp: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) };
  if (rising.size === 0) process.once('exit', waitForAll);
  rising.add(up);
  const worker = new Worker(program, { ...options, workerData: { ...given, ...up } });
  const { value } = Atomics.waitAsync(up.isUp, 0, 0);
  const risen = Promise.resolve(value).then(() => {
    rising.delete(up);
    if (rising.size === 0) process.off('exit', waitForAll);
  });
  // One that has ended by itself is waited for no longer.
  worker.once('exit', () => tellUp(up));
  return {
    worker,
    end: async () => {
      worker.ref();
      await risen;
      await worker.terminate();
    },
  };
};
