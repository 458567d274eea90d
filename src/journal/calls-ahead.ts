/**
 * Looking for the suspect calls of a long stretch on another thread (calls-worker.ts), while the caller finds out whether it
 * needs them. Whoever looks ahead ends it.
 */
import { Worker } from 'node:worker_threads';
import type { SuspectCalls } from './calls.ts';
import { isWorthAThread, type Window } from './search-windows.ts';

export interface CallsTask extends Window {
  readonly path: string;
  readonly recordsMax: number;
}

export interface CallsAhead {
  /** null: the thread failed, and the caller looks itself and meets what is wrong with the journal. */
  readonly found: Promise<SuspectCalls | null>;
  readonly end: () => void;
}

export const startCallsAhead = (task: CallsTask): CallsAhead => {
  const worker = new Worker(new URL('./calls-worker.ts', import.meta.url), { name: 'scribe calls', workerData: task });
  const { promise: found, resolve } = Promise.withResolvers<SuspectCalls | null>();
  worker.once('message', resolve);
  worker.on('error', () => {});
  worker.once('exit', () => resolve(null));
  return { found, end: () => void worker.terminate() };
};

/** null: the stretch is too short for that, or there is one processor alone. */
export const findCallsAhead = (task: CallsTask): CallsAhead | null =>
  isWorthAThread(task.toSeq - task.fromSeq + 1) ? startCallsAhead(task) : null;
