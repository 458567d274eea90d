/** Has CDI spec files parsed in a thread of its own, bounded in time and memory. */
import { Worker } from 'node:worker_threads';
import type { CdiSpec } from '../../domain/cdi/types.ts';
import { FailureError } from '../../domain/errors.ts';

export interface CdiText {
  readonly path: string;
  readonly text: string;
}

export type ParsedCdiFile =
  | { readonly path: string; readonly spec: CdiSpec; readonly problem?: never }
  | { readonly path: string; readonly spec?: never; readonly problem: string };

const MEMORY_MB_MAX = 256;
const TIMEOUT_MS = 20_000;

/** In the order of the files. Rejects with HostFailed when the thread does not come to an end. */
export async function parseCdiFiles(
  files: readonly CdiText[],
  timeoutMs: number = TIMEOUT_MS,
): Promise<readonly ParsedCdiFile[]> {
  if (files.length === 0) return [];
  const { promise, resolve, reject } = Promise.withResolvers<readonly ParsedCdiFile[]>();
  const fail = (why: string, cause?: unknown): void => {
    const paths = files.map(({ path }) => path).join(', ');
    reject(new FailureError('HostFailed', `the CDI specs ${paths} could not be parsed: ${why}`, { cause }));
  };
  const thread = new Worker(new URL('./cdi-thread.ts', import.meta.url), {
    workerData: files,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
  });
  const timer = setTimeout(() => fail(`that took more than ${timeoutMs} ms`), timeoutMs);
  thread.once('message', resolve);
  thread.once('error', (error) => fail('the parser failed', error));
  thread.once('exit', () => fail('the parser ended'));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
}
