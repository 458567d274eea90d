/**
 * One task, or the sandbox of a shim's own, from its creation to its deletion, as far as the rest of scribe hears of
 * it: keeps a Wait pending at the shim, takes exit and out-of-memory events, and reports each of them once it may be.
 * The same exit told by both ways is one report. Decides nothing: what becomes of an exit is the engine's.
 */
import type { Logger } from 'pino';
import { messageOf } from '../../../domain/model/errors.ts';
import type { LaunchedTask, TaskExit } from '../../../domain/model/tasks.ts';
import { untilDone } from '../../../platform/rpc/retry.ts';
import { isNotFound } from '../../../platform/ttrpc/status.ts';
import type { Timestamp } from '../../../wire/google/protobuf/timestamp.ts';
import type { Delivery } from '../delivery.ts';
import type { OomCounters } from './oom.ts';
import type { LiveShims } from '../process/live-shims.ts';
import type { TaskClient } from '../task-client.ts';
import { exitTimeNs } from './timestamps.ts';
import type { ShimTimings } from '../timings.ts';

/** An exit as a Wait reply or an event tells it; the pid is 0 where it is not told. */
export interface ToldExit {
  readonly pid: number;
  readonly exitStatus: number;
  readonly exitedAt: Timestamp | undefined;
}

export interface LiveTask {
  readonly podSandboxId: string;
  readonly containerId: string;
  readonly pid: () => number;
  /** The task is there: its pid, and the memory cgroup to read when it exits. */
  readonly launched: (pid: number, cgroupDir: Promise<string | null>) => void;
  /** It runs as this process, and a signal to that is all that its OCI runtime's kill would be. */
  readonly signalHere: (process: LaunchedTask) => void;
  /** null where that is not so, or not known. */
  readonly signalledHere: () => LaunchedTask | null;
  /** From now on its exit is reported; before, it is held back: nobody knows of the task yet. */
  readonly release: () => void;
  /** It never ran, or is deleted: ends watching, and what is still told of it is nobody's business. */
  readonly discard: () => void;
  /** Keeps a Wait pending until the task exits, over lost connections too. */
  readonly watch: () => void;
  /** The exit as it is recorded: with the kernel's count of kills for lack of memory, read now. */
  readonly exitOf: (exit: ToldExit) => Promise<TaskExit>;
  /** Resolves once the exit is durable (at once for a discarded task, or another's exit). */
  readonly reportExit: (exit: ToldExit) => Promise<void>;
  readonly reportOom: () => Promise<void>;
  readonly isExitDurable: () => boolean;
}

/** A task that its shim has created. */
export interface CreatedTask {
  readonly live: LiveTask;
  /** null where it has none before the start. */
  readonly process: LaunchedTask | null;
  readonly isStarted: boolean;
  /** Nothing is to be done at its start but to let its process go; never rejects. */
  readonly startsHere: Promise<boolean>;
}

export interface LiveTaskOptions {
  readonly podSandboxId: string;
  readonly containerId: string;
  /** The call that stays pending at the shim until the task has exited. */
  readonly wait: (client: TaskClient) => Promise<Omit<ToldExit, 'pid'>>;
  readonly shims: Pick<LiveShims, 'clientOf' | 'isGone'>;
  readonly delivery: Delivery;
  readonly counters: OomCounters;
  readonly timings: ShimTimings;
  readonly log: Logger;
}

export const createLiveTask = (options: LiveTaskOptions): LiveTask => {
  const { podSandboxId, containerId, shims, delivery, counters, timings, log } = options;
  const { promise: settled, resolve: settle } = Promise.withResolvers<'report' | 'discard'>();
  const stop = new AbortController();
  const isOver = (): boolean => stop.signal.aborted || shims.isGone(podSandboxId);
  let pid = 0;
  let here: LaunchedTask | null = null;
  let cgroup: Promise<string | null> = Promise.resolve(null);
  let exitReport: Promise<void> | null = null;
  let oomReport: Promise<void> | null = null;
  let exitDurable = false;

  const exitOf = async ({ exitStatus, exitedAt }: ToldExit): Promise<TaskExit> => {
    const exitedAtNs = exitTimeNs(exitedAt);
    const cgroupDir = await cgroup;
    const oomKills = cgroupDir === null ? 0 : await counters.oomKills(cgroupDir);
    if (cgroupDir === null || oomKills === 0) return { pid, exitStatus, exitedAtNs, oomKills };
    return { pid, exitStatus, exitedAtNs, oomKills, memory: await counters.memoryOf(cgroupDir) };
  };

  const deliverExit = async (told: ToldExit): Promise<void> => {
    const exit = await exitOf(told);
    await delivery.deliver(containerId, { kind: 'TaskExited', podSandboxId, containerId, execId: null, exit });
    exitDurable = true;
  };

  const reportExit = async (exit: ToldExit): Promise<void> => {
    const outcome = await settled;
    // A pid that differs is an earlier task's of the same id, whose start was undone.
    if (outcome === 'discard' || (exit.pid !== 0 && exit.pid !== pid)) return;
    exitReport ??= deliverExit(exit).catch((error: unknown) => {
      exitReport = null;
      throw error;
    });
    await exitReport;
  };

  const reportOom = async (): Promise<void> => {
    if ((await settled) === 'discard') return;
    oomReport ??= delivery.deliver(containerId, { kind: 'TaskOomed', containerId }).finally(() => {
      oomReport = null;
    });
    await oomReport;
  };

  const waitForExit = async (): Promise<void> => {
    const waitOnce = async (): Promise<void> => {
      const client = await shims.clientOf(podSandboxId);
      const { exitStatus, exitedAt } = await options.wait(client);
      await reportExit({ pid: 0, exitStatus, exitedAt });
    };
    const onFailure = (error: unknown): void => {
      // A gone shim is reported as such, and a task that is not there was deleted.
      if (isOver() || isNotFound(error)) throw error;
      log.warn({ containerId, error: messageOf(error) }, 'waiting for the exit of a task failed; trying again');
    };
    await untilDone(waitOnce, { backoff: timings.retry, signal: stop.signal, onFailure }).catch(() => undefined);
  };

  return {
    podSandboxId,
    containerId,
    pid: () => pid,
    exitOf,
    launched: (newPid, cgroupDir) => {
      pid = newPid;
      cgroup = cgroupDir.catch(() => null);
    },
    signalHere: (process) => {
      here = process;
    },
    signalledHere: () => here,
    release: () => {
      settle('report');
    },
    discard: () => {
      settle('discard');
      stop.abort();
    },
    watch: () => {
      void waitForExit();
    },
    reportExit,
    reportOom,
    isExitDurable: () => exitDurable,
  };
};
