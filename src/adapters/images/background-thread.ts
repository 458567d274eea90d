/**
 * A worker thread that exists only while there is work: started by the first message, ended when nothing has been
 * asked of it for a while. Keeps the daemon's memory small between pulls. Knows nothing of what the thread does.
 */
import { Worker } from 'node:worker_threads';
import { whyBroke } from '../../platform/broken-thread.ts';

export interface BackgroundThread<ToThread> {
  readonly post: (message: ToThread) => void;
  /** Says that nothing is under way: if that lasts, the thread is ended. */
  readonly rest: () => void;
  readonly close: () => Promise<void>;
}

const MEMORY_MB_MAX = 256;

export const createBackgroundThread = <ToThread, FromThread>(options: {
  /** The thread's program. */
  readonly program: URL;
  readonly data: unknown;
  readonly idleMs: number;
  readonly onMessage: (message: FromThread) => void;
  /** The thread broke; all that was asked of it is lost. */
  readonly onFailure: (error: Error) => void;
}): BackgroundThread<ToThread> => {
  const { program, data, idleMs, onMessage, onFailure } = options;
  let worker: Worker | null = null;
  let ending: Promise<unknown> = Promise.resolve();
  let idleTimer: NodeJS.Timeout | null = null;
  let queued: ToThread[] = [];
  let isClosed = false;

  const end = (): void => {
    const ended = worker;
    worker = null;
    if (ended !== null) ending = ended.terminate();
  };

  /** The one before it must be gone: they would write to the same files. */
  const start = async (): Promise<void> => {
    await ending;
    if (isClosed) return;
    const started = new Worker(program, {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
    });
    worker = started;
    started.on('message', onMessage);
    started.once('error', (error) => {
      if (worker === started) worker = null;
      onFailure(new Error(whyBroke(error), { cause: error }));
    });
    started.once('exit', (exitCode) => {
      if (worker !== started) return;
      worker = null;
      onFailure(new Error(`it ended with exit code ${exitCode}`));
    });
    for (const message of queued) started.postMessage(message);
    queued = [];
  };

  return {
    post: (message) => {
      if (idleTimer !== null) clearTimeout(idleTimer);
      idleTimer = null;
      if (worker !== null && queued.length === 0) {
        worker.ref();
        worker.postMessage(message);
        return;
      }
      queued.push(message);
      if (queued.length === 1) start().catch(onFailure);
    },
    rest: () => {
      if (idleTimer !== null) clearTimeout(idleTimer);
      idleTimer = setTimeout(end, idleMs);
      idleTimer.unref();
      worker?.unref();
    },
    close: async () => {
      isClosed = true;
      if (idleTimer !== null) clearTimeout(idleTimer);
      end();
      await ending;
    },
  };
};
