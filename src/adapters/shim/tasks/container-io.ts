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
import type { LogKeeper } from '../../log-keeper/types.ts';
import { makeFifo } from '../fifos.ts';
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
): ContainerIo => ({
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
    await logKeeper.open({
      containerId,
      stdoutFifo: streams.stdout,
      stderrFifo: terminal ? null : streams.stderr,
      logPath: containerLog.path,
      ...(containerLog.directory === undefined ? {} : { logDirectory: containerLog.directory }),
    });
  },
  release: async (containerId, timeoutMs) => {
    const dir = paths.ioDir(containerId);
    if (!(await files.isThere(dir))) return;
    await logKeeper.close(containerId, timeoutMs).catch((error: unknown) => {
      log.warn({ containerId, error: messageOf(error) }, 'the log keeper could not close the log of a container');
    });
    await files.removeWhole(dir);
  },
});
