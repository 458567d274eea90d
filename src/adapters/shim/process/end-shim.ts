/** How a shim's process is ended: asked first where it is spoken to, then by signals, to exactly that process; and its socket. */
import { lstat, unlink } from 'node:fs/promises';
import { FailureError, GrpcCode, messageOf } from '../../../domain/model/errors.ts';
import { SIGKILL, SIGTERM } from '../../../domain/values/signals.ts';
import { endsWithin, type HeldProcess, holdProcess } from '../../../platform/linux/processes.ts';
import { hasStatus } from '../../../platform/ttrpc/status.ts';
import type { ShimContext } from '../context.ts';
import type { TaskClient } from '../task-client.ts';
import { socketPathOf } from './bootstrap.ts';
import { dialShim, isRefused, type LiveShim } from './live-shim.ts';
import { type LogDrain, openLogDrain } from './log-drain.ts';

type Ending = Pick<ShimContext, 'timings' | 'log'>;

/** Removes the socket of a shim that has ended, if it is one and nobody answers there. */
export const removeDeadSocket = async ({ timings }: Ending, address: string): Promise<void> => {
  const path = socketPathOf(address);
  const found = await lstat(path).catch(() => null);
  if (path.startsWith('\0') || found?.isSocket() !== true) return;
  try {
    (await dialShim({ address, taskApi: 3 }, timings.connectMs)).close();
  } catch (error) {
    if (isRefused(error)) await unlink(path).catch(() => undefined);
  }
};

/** Sends one signal after the other until the process has ended. False when it outlives even the last. */
const seeEnd = async (process: HeldProcess, signals: readonly number[], waitMs: number): Promise<boolean> => {
  for (const signal of signals) {
    process.kill(signal);
    if (await endsWithin(process, waitMs)) return true;
  }
  return false;
};

/**
 * Ends shims by signals that nobody speaks to, while their log is read: one whose log nobody reads hangs, deaf to SIGTERM, by
 * which it tidies up its socket. Where `dir` is gone there is no log either. False when one outlives even SIGKILL.
 */
export const endUnasked = async (
  { timings, log }: Ending,
  dir: string,
  processes: readonly HeldProcess[],
): Promise<boolean> => {
  const logDrain = await openLogDrain(dir, log).catch((): LogDrain | null => null);
  try {
    const ended = await Promise.all(processes.map((held) => seeEnd(held, [SIGTERM, SIGKILL], timings.shimExitMs)));
    return ended.every(Boolean);
  } finally {
    logDrain?.close();
  }
};

/** False where the shim has no sandbox service after all. */
const shutDownSandbox = async ({ sandbox }: TaskClient, sandboxId: string, timeoutMs: number): Promise<boolean> => {
  try {
    await sandbox.shutdown({ sandboxId }, timeoutMs);
    return true;
  } catch (error) {
    if (hasStatus(error, GrpcCode.UNIMPLEMENTED)) return false;
    throw error;
  }
};

const askToShutDown = async ({ timings, log }: Ending, live: LiveShim, hasSandbox: boolean): Promise<void> => {
  const { id } = live;
  try {
    const client = await live.client();
    const ended = hasSandbox && (await shutDownSandbox(client, id, timings.shimExitMs));
    if (!ended) await client.shutdown({ id, now: true }, timings.callMs);
  } catch (error) {
    // Most shims close the connection instead of answering; a shim that does neither is killed.
    log.debug({ shimId: id, error: messageOf(error) }, 'a shim did not answer Shutdown');
  }
};

/** Ends a shim that is spoken to. Resolves with whether it had to be killed. */
export const endConnected = async (context: Ending, live: LiveShim, hasSandbox = false): Promise<boolean> => {
  const { timings, log } = context;
  const { id, shim } = live;
  const process = await holdProcess(shim);
  try {
    if (process === null) return false;
    await askToShutDown(context, live, hasSandbox);
    if (await endsWithin(process, timings.shimExitMs)) return false;
    log.warn({ shimId: id, pid: shim.pid }, 'a shim does not end and is killed');
    if (await seeEnd(process, [SIGKILL], timings.shimExitMs)) return true;
    throw new FailureError('ShimFailed', `The shim (pid ${shim.pid}) does not end, not even by SIGKILL.`);
  } finally {
    process?.release();
    await removeDeadSocket(context, shim.address);
  }
};
