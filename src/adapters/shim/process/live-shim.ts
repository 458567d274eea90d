/**
 * A live shim, of one pod or of several, or of none for a moment: its process, one connection to it that is made anew when
 * it breaks, and its log. Watches the process by pidfd, so that its end is told by the kernel, once, and so that a signal can
 * hit no other process. Knows no tasks.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureError } from '../../../domain/model/errors.ts';
import type { ShimAddress } from '../../../domain/model/tasks.ts';
import { dial } from '../../../platform/linux/dial.ts';
import type { HeldProcess } from '../../../platform/linux/processes.ts';
import { createSemaphore, type Semaphore } from '../../../platform/linux/semaphore.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { orAfter } from '../../../platform/rpc/timeout.ts';
import { createTtrpcClient } from '../../../platform/ttrpc/client.ts';
import type { ShimVersion } from '../../../domain/model/shim-version.ts';
import { socketPathOf } from './bootstrap.ts';
import { createCallRecord } from './call-record.ts';
import type { LogDrain } from './log-drain.ts';
import { createTaskClient, type TaskClient } from '../task-client.ts';

const dialAgainMs = 20;
const EXECS_AT_ONCE = 8;

/** Nobody listens at the address: whoever did is gone. */
export const isRefused = (error: unknown): boolean => {
  const code = errorCodeOf(error);
  return code === 'ECONNREFUSED' || code === 'ENOENT';
};

/** Connects to a shim. Rejects with the system's error; isRefused tells whether there is nobody. */
export const dialShim = async (
  { address, taskApi }: Pick<ShimAddress, 'address' | 'taskApi'>,
  timeoutMs: number,
): Promise<TaskClient> => {
  const path = socketPathOf(address);
  const giveUpAt = performance.now() + timeoutMs;
  for (;;) {
    const leftMs = Math.max(1, giveUpAt - performance.now());
    try {
      return createTaskClient(createTtrpcClient(await dial({ path }, leftMs), `the shim at ${address}`), taskApi);
    } catch (error) {
      // A full backlog is the one refusal that a live shim gives, and no event tells when there is room again.
      if (errorCodeOf(error) !== 'EAGAIN' || leftMs <= dialAgainMs) throw error;
      await sleep(dialAgainMs);
    }
  }
};

export interface LiveShim {
  /** What it was started under: the pod's id, or one that is no pod's. */
  readonly id: string;
  readonly shim: ShimAddress;
  /** As its binary said when this daemon started it; null: it said none, or an earlier daemon did. */
  readonly version: ShimVersion | null;
  /** The connection, made anew when it has closed. Rejects with ShimFailed once the shim is gone. */
  readonly client: () => Promise<TaskClient>;
  /**
   * For commands, until they have ended or at least run for a while. Each is started by a program of the OCI runtime, so
   * that a thousand at once would take all of the node; and shims that start one after the other (1.6) let only one exit
   * through between all the starts that wait.
   */
  readonly execTurn: Semaphore;
  /**
   * For the creation of a task: runc's shim makes one after the other, under a lock that all other calls need too. Were
   * several waiting for it, whoever asks for anything else would wait for all of them.
   */
  readonly createTurn: Semaphore;
  /** The process has ended. */
  readonly isGone: () => boolean;
  /** It runs, has no task any more, and has done all that it was asked since it was connected to. */
  readonly isClean: () => boolean;
  /** It is known to have no task of that id without asking: of what an earlier daemon asked it, nothing is known. */
  readonly lacks: (taskId: string) => boolean;
  /** Resolves when the process has ended; stays pending after close. */
  readonly ended: Promise<void>;
  /** Signals exactly this process; false when it has ended. */
  readonly kill: (signal: number) => boolean;
  /** Lets go of connection, process and log; the shim itself runs on. */
  readonly close: () => void;
}

export interface LiveShimOptions {
  readonly id: string;
  readonly shim: ShimAddress;
  readonly version: ShimVersion | null;
  readonly process: HeldProcess;
  readonly logDrain: LogDrain;
  /** The first connection, when there is one already. */
  readonly client: TaskClient;
  readonly connectMs: number;
}

/** Takes over what it is given: `close` lets go of it all. */
export const createLiveShim = (options: LiveShimOptions): LiveShim => {
  const { id, shim, version, process, logDrain, connectMs } = options;
  const calls = createCallRecord();
  let open = calls.noting(options.client);
  let dialing: Promise<TaskClient> | null = null;
  let gone = false;
  let closed = false;

  const { promise: ended, resolve: settleEnded } = Promise.withResolvers<void>();
  const goneFailure = (cause?: unknown): FailureError =>
    new FailureError('ShimFailed', `The shim ${id} (pid ${shim.pid}) is gone.`, { cause });

  void process.ended.then(() => {
    gone = true;
    open.close();
    logDrain.close();
    process.release();
    settleEnded();
  });

  const dial = async (): Promise<TaskClient> => {
    try {
      const client = calls.noting(await dialShim(shim, connectMs));
      if (closed || gone) {
        client.close();
        throw goneFailure();
      }
      open = client;
      return client;
    } catch (error) {
      // A dying process closes its socket a moment before it counts as dead.
      if (isRefused(error)) await orAfter(process.ended, connectMs, undefined);
      throw gone || isRefused(error) ? goneFailure(error) : error;
    }
  };

  return {
    id,
    shim,
    version,
    client: async () => {
      if (gone || closed) throw goneFailure();
      if (open.isOpen()) return open;
      // Whoever comes first dials, the others wait for the same connection.
      dialing ??= dial().finally(() => {
        dialing = null;
      });
      return dialing;
    },
    execTurn: createSemaphore(EXECS_AT_ONCE),
    createTurn: createSemaphore(1),
    isGone: () => gone,
    isClean: () => !gone && !closed && calls.isClean(),
    lacks: (taskId) => version !== null && calls.lacks(taskId),
    ended,
    kill: (signal) => process.kill(signal),
    close: () => {
      closed = true;
      open.close();
      logDrain.close();
      process.release();
    },
  };
};
