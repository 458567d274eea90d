/**
 * A worker thread that exists only while there is work: started by the first message, ended when nothing has been
 * asked of it for a while. Keeps the daemon's memory small between pulls. Knows nothing of what the thread does.
 */
import { whyBroke } from '../../platform/broken-thread.ts';
import { type NativeThread, startNativeThread } from '../../platform/native-thread.ts';

export interface BackgroundThread<ToThread> {
  readonly post: (message: ToThread) => void;
  /** Says that nothing is under way: if that lasts, the thread is ended. */
  readonly rest: () => void;
  readonly close: () => Promise<void>;
}

const MEMORY_MB_MAX = 256;

export const createBackgroundThread = <ToThread, FromThread>(options: {
  /** The thread's program; it says when it is up. */
  readonly program: URL;
  readonly data: object | null;
  readonly idleMs: number;
  readonly onMessage: (message: FromThread) => void;
  /** The thread broke; all that was asked of it is lost. */
  readonly onFailure: (error: Error) => void;
}): BackgroundThread<ToThread> => {
  const { program, data, idleMs, onMessage, onFailure } = options;
  let thread: NativeThread | null = null;
  let ending: Promise<unknown> = Promise.resolve();
  let idleTimer: NodeJS.Timeout | null = null;
  let queued: ToThread[] = [];
  let isClosed = false;

  const end = (): void => {
    if (thread !== null) ending = thread.end();
    thread = null;
  };

  /** The one before it must be gone: they would write to the same files. */
  const start = async (): Promise<void> => {
    await ending;
    if (isClosed) return;
    const started = startNativeThread(program, data, {
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
    });
    thread = started;
    const { worker } = started;
    worker.on('message', onMessage);
    worker.once('error', (error) => {
      if (thread === started) thread = null;
      onFailure(new Error(whyBroke(error), { cause: error }));
    });
    worker.once('exit', (exitCode) => {
      if (thread !== started) return;
      thread = null;
      onFailure(new Error(`it ended with exit code ${exitCode}`));
    });
    for (const message of queued) worker.postMessage(message);
    queued = [];
  };

  return {
    post: (message) => {
      if (idleTimer !== null) clearTimeout(idleTimer);
      idleTimer = null;
      if (thread !== null && queued.length === 0) {
        thread.worker.ref();
        thread.worker.postMessage(message);
        return;
      }
      queued.push(message);
      if (queued.length === 1) start().catch(onFailure);
    },
    rest: () => {
      if (idleTimer !== null) clearTimeout(idleTimer);
      idleTimer = setTimeout(end, idleMs);
      idleTimer.unref();
      thread?.worker.unref();
    },
    close: async () => {
      isClosed = true;
      if (idleTimer !== null) clearTimeout(idleTimer);
      end();
      await ending;
    },
  };
};
