/** Has files that admins and vendors write, JSON and YAML, parsed in a thread of its own, bounded in time and memory. */
import { Worker } from 'node:worker_threads';
import type { CdiSpec } from '../../domain/cdi/types.ts';
import type { BlockIOClasses } from '../../domain/classes/types.ts';
import { FailureError } from '../../domain/errors.ts';

/** What each kind of file says. */
export interface FileContents {
  readonly cdi: CdiSpec;
  readonly blockIO: BlockIOClasses;
}
export type FileKind = keyof FileContents;

export interface FileText {
  readonly path: string;
  readonly text: string;
}

export type ParsedFile<K extends FileKind> =
  | { readonly path: string; readonly content: FileContents[K]; readonly problem?: never }
  | { readonly path: string; readonly content?: never; readonly problem: string };

export interface ParseRequest {
  readonly kind: FileKind;
  readonly files: readonly FileText[];
}

const MEMORY_MB_MAX = 256;
const TIMEOUT_MS = 20_000;

/** In the order of the files. Rejects with HostFailed when the thread does not come to an end. */
export async function parseFiles<K extends FileKind>(
  kind: K,
  files: readonly FileText[],
  timeoutMs: number = TIMEOUT_MS,
): Promise<readonly ParsedFile<K>[]> {
  if (files.length === 0) return [];
  const { promise, resolve, reject } = Promise.withResolvers<readonly ParsedFile<K>[]>();
  const fail = (why: string, cause?: unknown): void => {
    const paths = files.map(({ path }) => path).join(', ');
    reject(new FailureError('HostFailed', `${paths} could not be parsed: ${why}`, { cause }));
  };
  const thread = new Worker(new URL('./parse-thread.ts', import.meta.url), {
    workerData: { kind, files } satisfies ParseRequest,
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
