/**
 * Signals the main process of a task without its shim, which would have the OCI runtime started to do no more than this:
 * some 5 ms of a stop. Only where it is no more: see `isSignalledHere` and `isInitOf`; whoever
 * is told false asks the shim. Hits exactly that process, held by pidfd.
 */
import { basename } from 'node:path';
import type { EffectOf } from '../../../domain/model/effects.ts';
import { messageOf } from '../../../domain/model/errors.ts';
import { type RuntimeHandler, takesRuncOptions } from '../../../domain/model/runtime-handler.ts';
import { SIGKILL } from '../../../domain/values/signals.ts';
import {
  endsWithin,
  type HeldProcess,
  holdProcess,
  readProcessStat,
  readProcessStatus,
} from '../../../platform/linux/processes.ts';
import type { ShimContext } from '../context.ts';

/** Others may be sandboxes, whose process is not the container's, or wrap a runtime and add something. */
const PLAIN_RUNTIMES: ReadonlySet<string> = new Set(['runc', 'crun']);

/** After SIGKILL the kernel ends a process in this time, but for one that a freezer of control groups version 1 holds. */
const FROZEN_MS = 500;

/** True for handlers whose OCI runtime does nothing but send a signal to a container that has a PID namespace of its own. */
export const isSignalledHere = (handler: RuntimeHandler): boolean =>
  takesRuncOptions(handler) && PLAIN_RUNTIMES.has(basename(handler.binaryName));

/**
 * Of the text of /proc/<pid>/status: it is a child of that process, and the first of a PID namespace below it, whose end
 * is the end of all in there. Elsewhere runtimes look for the others of the container.
 */
export const isInitOf = (status: string, parentPid: number): boolean => {
  const namespacePids = /^NSpid:\s+(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
  const parent = /^PPid:\s+(\d+)$/m.exec(status)?.[1];
  return parent === String(parentPid) && namespacePids.length > 1 && namespacePids.at(-1) === '1';
};

/** The OCI runtime thaws what it kills. */
const killWhereFrozen = async (held: HeldProcess, killByShim: () => Promise<unknown>): Promise<void> => {
  try {
    if (!(await endsWithin(held, FROZEN_MS))) await killByShim();
  } finally {
    held.release();
  }
};

/** Resolves with whether the signal was sent; `killByShim` is for what SIGKILL alone does not end. */
export const signalInit = async (
  { tasks, shims, log }: Pick<ShimContext, 'tasks' | 'shims' | 'log'>,
  { podSandboxId, containerId, signal }: EffectOf<'KillTask'>,
  killByShim: () => Promise<unknown>,
): Promise<boolean> => {
  const init = tasks.get(containerId)?.signalledHere() ?? null;
  const shimPid = shims.get(podSandboxId)?.shim.pid;
  if (init === null || shimPid === undefined) return false;
  const held = await holdProcess(init).catch((error: unknown) => {
    // For want of descriptors, say, which the shim has of its own.
    log.warn({ containerId, error: messageOf(error) }, 'the process of a task cannot be held; its shim signals it');
    return null;
  });
  if (held === null) return false;
  const status = await readProcessStatus(init.pid).catch(() => '');
  if (!isInitOf(status, shimPid) || !held.kill(signal)) {
    held.release();
    return false;
  }
  if (signal !== SIGKILL) held.release();
  else
    killWhereFrozen(held, killByShim).catch((error: unknown) => {
      log.warn({ containerId, error: messageOf(error) }, 'a task does not end by SIGKILL');
    });
  return true;
};

/**
 * Signals a process that its shim calls running, and that the OCI runtime knows nothing of any more, since its state was
 * removed under it: nobody else can end that. Only a child of the shim. Resolves with whether it was sent.
 */
export const signalUnknown = async (
  { shims, log }: Pick<ShimContext, 'shims' | 'log'>,
  { podSandboxId, containerId, signal }: EffectOf<'KillTask'>,
  pid: number,
): Promise<boolean> => {
  const shimPid = shims.get(podSandboxId)?.shim.pid;
  const stat = pid === 0 || shimPid === undefined ? null : await readProcessStat(pid);
  const held = stat === null ? null : await holdProcess(stat);
  if (held === null) return false;
  try {
    // Of the very process that is held.
    if ((await readProcessStat(pid))?.parentPid !== shimPid || !held.kill(signal)) return false;
  } finally {
    held.release();
  }
  log.warn(
    { containerId, signal },
    'the OCI runtime has lost its state of a container, whose process is signalled without it',
  );
  return true;
};
