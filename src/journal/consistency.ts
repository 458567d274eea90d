/**
 * Proofs that the tree of a journal contains an earlier one, made on a thread of their own (consistency-worker.ts): reading
 * the hashes takes some ten milliseconds, which the daemon's loop does not have.
 */
import { startNativeThread } from '../platform/native-thread.ts';

export interface ConsistencyTask {
  readonly path: string;
  /** At least one. */
  readonly oldSize: number;
  readonly size: number;
}

/** The hashes of the proof; rejects when the journal can't be read. */
export const proveConsistency = (task: ConsistencyTask): Promise<readonly Uint8Array[]> =>
  new Promise((resolve, reject) => {
    const program = new URL('./consistency-worker.ts', import.meta.url);
    const { worker } = startNativeThread(program, task, { name: 'scribe proof' });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`The proving thread ended with code ${code}.`)));
  });
