/**
 * Has files that admins and vendors write, JSON and YAML, parsed in a thread of its own, bounded in time and memory. What
 * one of them does to the thread must not keep the others from being parsed.
 */
import { Worker } from 'node:worker_threads';
import type { CdiSpec } from '../../domain/model/cdi.ts';
import type { BlockIOClasses } from '../../domain/model/classes.ts';
import { messageOf } from '../../domain/model/errors.ts';
import { watchIdle } from '../../platform/rpc/idle.ts';

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
/** For each file. */
const TIMEOUT_MS = 20_000;

interface ParsedSome<K extends FileKind> {
  readonly parsed: readonly ParsedFile<K>[];
  /** Why there is no more. */
  readonly end: string;
}

/** As many of the first files as one thread gets to. */
async function parseInThread<K extends FileKind>(
  kind: K,
  files: readonly FileText[],
  timeoutMs: number,
): Promise<ParsedSome<K>> {
  const parsed: ParsedFile<K>[] = [];
  const { promise: ended, resolve: end } = Promise.withResolvers<string>();
  const thread = new Worker(new URL('./parse-thread.ts', import.meta.url), {
    workerData: { kind, files } satisfies ParseRequest,
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB_MAX },
  });
  const idle = watchIdle(timeoutMs, () => end(`that took more than ${timeoutMs} ms`));
  thread.on('message', (file: ParsedFile<K>) => {
    idle.touch();
    if (parsed.push(file) === files.length) end('all are parsed');
  });
  thread.on('error', (error) => end(messageOf(error)));
  thread.on('exit', () => end('the parser ended'));
  try {
    return { end: await ended, parsed };
  } finally {
    idle.stop();
    await thread.terminate();
  }
}

/** In the order of the files. One that takes too much time or memory has that as its problem, and holds up no other. */
export async function parseFiles<K extends FileKind>(
  kind: K,
  files: readonly FileText[],
  timeoutMs: number = TIMEOUT_MS,
): Promise<readonly ParsedFile<K>[]> {
  if (files.length === 0) return [];
  const { parsed, end } = await parseInThread(kind, files, timeoutMs);
  const [stopper, ...left] = files.slice(parsed.length);
  if (stopper === undefined) return parsed;
  const { path } = stopper;
  const problem = `${path} could not be parsed: ${end}`;
  return [...parsed, { path, problem }, ...(await parseFiles(kind, left, timeoutMs))];
}
