/**
 * The FIFOs between a container and whoever reads its output. The log keeper reads stdout and stderr from before the
 * task is created until it is deleted; stdin is a FIFO of which the shim itself holds both ends, so that it stays open
 * and silent until somebody attaches. A container without log (the pause task) has no streams at all.
 */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { messageOf } from '../../../domain/model/errors.ts';
import type { EffectOf } from '../../../domain/model/effects.ts';
import type { Files } from '../../../platform/linux/files.ts';
import { closeDescriptor } from '../../../platform/linux/syscalls.ts';
import type { LogKeeper } from '../../log-keeper/types.ts';
import { makeFifo, openFifoReader } from '../fifos.ts';
import type { ShimPaths } from '../paths.ts';

/** Paths as CreateTaskRequest has them; an empty one is /dev/null. */
export interface TaskStreams {
  readonly stdin: string;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ContainerIo {
  /** Makes the FIFOs. Doing it again changes nothing. */
  readonly make: (effect: EffectOf<'CreateTask'>) => Promise<TaskStreams>;
  /**
   * Resolves once readers are there, so that a shim may open the FIFOs. Doing it again changes nothing. When it rejects, nothing is
   * read, and no shim waits for a reader until `release`.
   */
  readonly read: (effect: EffectOf<'CreateTask'>, streams: TaskStreams) => Promise<void>;
  /** Waits up to `timeoutMs` for the rest of the output, then removes what was made. Nothing to remove is nothing. */
  readonly release: (containerId: string, timeoutMs: number) => Promise<void>;
}

const noStreams: TaskStreams = { stdin: '', stdout: '', stderr: '' };

export const createContainerIo = (
  paths: ShimPaths,
  logKeeper: Pick<LogKeeper, 'open' | 'close'>,
  files: Files,
  log: Logger,
): ContainerIo => {
  /** FIFOs that nobody reads, held open until their container is done with, so that who opens them for writing does not wait. */
  const unread = new Map<string, readonly number[]>();
  const hold = async (containerId: string, paths: readonly string[]): Promise<void> => {
    const held = await Promise.all(paths.filter(Boolean).map((path) => openFifoReader(path, files.callsAt(path))));
    unread.set(containerId, held);
  };
  const letGo = (containerId: string): void => {
    for (const fd of unread.get(containerId) ?? []) closeDescriptor(fd);
    unread.delete(containerId);
  };

  return {
    make: async ({ containerId, log: containerLog, stdin, terminal }) => {
      if (containerLog === null) return noStreams;
      const dir = paths.ioDir(containerId);
      await files.makeDirectory(dir, 0o700);
      const streams: TaskStreams = {
        stdin: stdin ? join(dir, 'stdin') : '',
        stdout: join(dir, 'stdout'),
        // A terminal has one output; anything else needs both, or shims refuse it.
        stderr: terminal ? '' : join(dir, 'stderr'),
      };
      await Promise.all(
        Object.values(streams)
          .filter(Boolean)
          .map((path: string) => makeFifo(path, files.callsAt(path))),
      );
      return streams;
    },
    read: async ({ containerId, log: containerLog, terminal }, streams) => {
      if (containerLog === null) return;
      try {
        await logKeeper.open({
          containerId,
          stdoutFifo: streams.stdout,
          stderrFifo: terminal ? null : streams.stderr,
          logPath: containerLog.path,
          ...(containerLog.directory === undefined ? {} : { logDirectory: containerLog.directory }),
        });
      } catch (error) {
        // What is wrong is said by the log keeper, not by who can't even open them.
        await hold(containerId, [streams.stdout, streams.stderr]).catch(() => undefined);
        throw error;
      }
    },
    release: async (containerId, timeoutMs) => {
      letGo(containerId);
      const dir = paths.ioDir(containerId);
      if (!(await files.isThere(dir))) return;
      await logKeeper.close(containerId, timeoutMs).catch((error: unknown) => {
        log.warn({ containerId, error: messageOf(error) }, 'the log keeper could not close the log of a container');
      });
      await files.removeWhole(dir);
    },
  };
};
