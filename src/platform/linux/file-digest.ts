/**
 * The SHA-256 of an open file, read by a thread of its own: archives of checkpoints have gigabytes. A copy is written on the
 * way where one is asked for, so that what is used later is what was hashed, whoever changes the file meanwhile.
 */
import { Worker } from 'node:worker_threads';
import { unlessAborted } from '../rpc/timeout.ts';

export interface DigestWork {
  /** Descriptor, read from its beginning. */
  readonly from: number;
  /** What lies behind is left alone. */
  readonly sizeBytes: number;
  /** Descriptor of the copy, an empty file; null: none. */
  readonly to: number | null;
}

/** As "sha256:…". The descriptors are the caller's to close. Rejects with the signal's reason, or what the kernel says. */
export const digestOf = async (work: DigestWork, signal?: AbortSignal): Promise<string> => {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const thread = new Worker(new URL('./file-digest-thread.ts', import.meta.url), { workerData: work });
  thread.once('message', resolve);
  thread.once('error', reject);
  thread.once('exit', () => reject(new Error('the thread that hashes has ended')));
  try {
    return await (signal === undefined ? promise : unlessAborted(promise, signal));
  } finally {
    await thread.terminate();
  }
};
