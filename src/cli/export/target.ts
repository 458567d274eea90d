/**
 * Where an export goes: a stream, a file, or a receiver of OTLP over HTTP. What `send` has resolved, the target has. An export
 * that goes on waits for a target that takes nothing for a while; any other fails, and the next one begins where it was.
 */
import { type FileHandle, open, stat } from 'node:fs/promises';
import { isFullDisk } from '../../domain/model/errors.ts';
import { failure } from '../command.ts';
import { type Output, write } from '../io.ts';
import { give, type Problem, type Waiting } from '../waiting.ts';
import { post, refusalText } from './otlp.ts';

export interface Target {
  readonly send: (text: string) => Promise<void>;
  /** How many records it has refused for good. */
  readonly refused: () => number;
  readonly close: () => Promise<void>;
}

const FILE_MODE = 0o600;
const TRIES_WAIT_MS = [100, 400, 1600, 5000] as const;
const NEWLINE = 0x0a;

export const streamTarget = (output: Output): Target => ({
  send: (text) => write(output, text),
  refused: () => 0,
  close: async () => {},
});

const sending =
  (
    name: string,
    tryOnce: (text: string) => Promise<Problem | null>,
    waitsMs: readonly number[],
    waiting: Waiting,
  ): Target['send'] =>
  (text) =>
    give({
      tryOnce: () => tryOnce(text),
      waitsMs,
      waiting,
      saying: {
        problem: (words) => `${name} did not take the records: ${words}.`,
        waits: 'They wait until it does.',
        isOver: `${name} takes records again.`,
      },
      failed: (said) => failure(`${said} With --cursor-file the next export goes on where this one ended.`),
    });

/** Whether what was exported last was cut off in the middle of a line: the next line must not become a part of it. */
const endsInside = async (path: string): Promise<boolean> => {
  const file = await open(path, 'r');
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size === 0) return false;
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, stats.size - 1);
    return buffer[0] !== NEWLINE;
  } finally {
    await file.close();
  }
};

/** What is in it by now; null for a device or a pipe, which nothing can be taken back from. */
const lengthOf = async (file: FileHandle): Promise<number | null> => {
  const stats = await file.stat();
  return stats.isFile() ? stats.size : null;
};

/** Who rotates files moves them away, and may delete them later: what is written into one from then on is lost. */
const isStillAt = async (path: string, file: FileHandle): Promise<boolean> => {
  const own = await file.stat({ bigint: true });
  const there = await stat(path, { bigint: true }).catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return null;
    throw thrown;
  });
  return there !== null && there.ino === own.ino && there.dev === own.dev;
};

/**
 * Appends, so that a cursor's next lines follow the last. What could not be written whole is taken back. Where another file, or none,
 * has come to be at the path, the next lines go there, and those too that were written meanwhile: they may come twice.
 */
export const fileTarget = async (path: string, waiting: Waiting): Promise<Target> => {
  const refused = (thrown: Error): never => {
    throw failure(`--output ${path} cannot be written: ${thrown.message}.`, thrown);
  };
  const appending = (): Promise<FileHandle> => open(path, 'a', FILE_MODE);
  let file = await appending().catch(refused);
  const isRegular = (await lengthOf(file)) !== null;
  let start = isRegular && (await endsInside(path).catch(refused)) ? '\n' : '';

  /** To the end, and durable, or not at all. */
  const append = async (text: string): Promise<void> => {
    const length = await lengthOf(file);
    try {
      await file.writeFile(start + text);
      // Devices and pipes have nothing to make durable.
      if (length !== null) await file.datasync();
      start = '';
    } catch (thrown) {
      if (length !== null) await file.truncate(length).catch(() => {});
      throw thrown;
    }
  };

  const tryOnce = async (text: string): Promise<Problem | null> => {
    try {
      if (isRegular && !(await isStillAt(path, file))) {
        const moved = file;
        file = await appending();
        await moved.close();
        start = (await endsInside(path)) ? '\n' : '';
      }
      await append(text);
      return isRegular && !(await isStillAt(path, file)) ? await tryOnce(text) : null;
    } catch (thrown) {
      return isFullDisk(thrown) ? { words: thrown.message, afterMs: 0 } : refused(thrown as Error);
    }
  };
  return { send: sending(`--output ${path}`, tryOnce, [], waiting), refused: () => 0, close: () => file.close() };
};

/** @param tell  says a line about it, whether the export waits or not */
export const otlpTarget = (endpoint: string, tell: (line: string) => void, waiting: Waiting): Target => {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/logs`;
  let refusedCount = 0;
  const tryOnce = async (text: string): Promise<Problem | null> => {
    const posted = await post(url, text);
    if (posted.kind === 'not taken') return { words: posted.problem, afterMs: posted.afterMs };
    if (posted.refused !== null) {
      refusedCount += posted.refused.count;
      tell(refusalText(url, posted.refused));
    }
    return null;
  };
  return {
    send: sending(url, tryOnce, TRIES_WAIT_MS, waiting),
    refused: () => refusedCount,
    close: async () => {},
  };
};
