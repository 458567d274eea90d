/**
 * The effects StartShim and StopShim. One shim serves all containers of a pod: it is started from the pod's own bundle,
 * which is that of the pause task where there is one. One that several pods share is started from a directory of its own,
 * once, and spoken to over one connection; shims know tasks by their container's id and pods not at all.
 */
import { lstat, mkdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import type { RuntimeHandler } from '../../../domain/model/runtime-handler.ts';
import type { SharedShim, ShimAddress } from '../../../domain/model/tasks.ts';
import { FailureError, GrpcCode, messageOf } from '../../../domain/model/errors.ts';
import { SIGKILL, SIGTERM } from '../../../domain/values/signals.ts';
import { endsWithin, type HeldProcess, holdProcess } from '../../../platform/linux/processes.ts';
import { hasStatus } from '../../../platform/ttrpc/status.ts';
import { socketPathOf } from './bootstrap.ts';
import type { ShimContext } from '../context.ts';
import { attempting } from '../failures.ts';
import { type LogDrain, openLogDrain } from './log-drain.ts';
import { createLiveShim, dialShim, isRefused, type LiveShim } from './live-shim.ts';
import { findShims, identifyShim } from './identify.ts';
import type { TaskClient } from '../task-client.ts';
import { removeLeftCgroup } from '../tasks/kill-and-delete.ts';

/** Where shims up to 1.7 note their address; later ones note it nowhere. */
const addressFileName = 'address';

type ShimEffect = Pick<EffectOf<'StartShim'>, 'podSandboxId' | 'bundlePath' | 'shared'>;

/** What the pod's shim is started under, and where. */
export const originOf = ({ podSandboxId, bundlePath, shared }: ShimEffect): SharedShim =>
  shared ?? { id: podSandboxId, dir: bundlePath };

/** A shim reads its group there before it starts: without one it is the only one of its id. */
const makeOrigin = async (dir: string): Promise<void> => {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(join(dir, 'config.json'), '{}', { mode: 0o600 });
};

const connectTo = async (
  { binaries, timings, log }: ShimContext,
  { id, dir }: SharedShim,
  handler: RuntimeHandler,
  release: (undo: () => void) => void,
): Promise<LiveShim> => {
  const logDrain = await openLogDrain(dir, log.child({ shimId: id }));
  release(logDrain.close);
  const endpoint = await binaries.start(handler, id, dir);
  const client = await dialShim(endpoint, timings.connectMs);
  release(client.close);
  const { shimPid: pid } = await client.connect({ id }, timings.connectMs);
  const startTicks = await identifyShim(pid, id, dir);
  const process = await holdProcess({ pid, startTicks });
  if (process === null) throw new FailureError('ShimFailed', `The shim (pid ${pid}) ended as soon as it had started.`);
  const shim: ShimAddress = { ...endpoint, pid, startTicks };
  return createLiveShim({ id, shim, process, logDrain, client, connectMs: timings.connectMs });
};

const open = async (context: ShimContext, origin: SharedShim, handler: RuntimeHandler): Promise<LiveShim> => {
  const undo: (() => void)[] = [];
  try {
    return await connectTo(context, origin, handler, (release) => undo.push(release));
  } catch (error) {
    for (const release of undo) release();
    throw error;
  }
};

/** Starts the pod's shim, or finds the one that another pod, or an earlier try, has started: `start` tells that by itself. */
export const startShim = (context: ShimContext, effect: EffectOf<'StartShim'>): Promise<EffectResults['StartShim']> =>
  attempting(`start the shim of pod sandbox ${effect.podSandboxId}`, async () => {
    const { podSandboxId, handler, shared } = effect;
    const openShared = async ({ id, dir }: SharedShim): Promise<LiveShim | null> =>
      context.shims.share(id, async () => {
        await makeOrigin(dir);
        return open(context, { id, dir }, handler);
      });
    const live = shared === undefined ? await open(context, originOf(effect), handler) : await openShared(shared);
    if (live === null || live.isGone())
      throw new FailureError('ShimFailed', `The shim ${originOf(effect).id} ended before the pod had it.`);
    context.shims.add(podSandboxId, live);
    return { shim: live.shim };
  });

/** Removes the socket of a shim that has ended, if it is one and nobody answers there. */
const removeDeadSocket = async ({ timings }: ShimContext, address: string): Promise<void> => {
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

const askToShutDown = async (
  { timings, log }: ShimContext,
  live: LiveShim,
  { hasSandbox = false }: EffectOf<'StopShim'>,
): Promise<void> => {
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
const stopConnected = async (context: ShimContext, live: LiveShim, effect: EffectOf<'StopShim'>): Promise<boolean> => {
  const { timings, log } = context;
  const { id, shim } = live;
  const process = await holdProcess(shim);
  try {
    if (process === null) return false;
    await askToShutDown(context, live, effect);
    if (await endsWithin(process, timings.shimExitMs)) return false;
    log.warn({ shimId: id, pid: shim.pid }, 'a shim does not end and is killed');
    if (await seeEnd(process, [SIGKILL], timings.shimExitMs)) return true;
    throw new FailureError('ShimFailed', `The shim (pid ${shim.pid}) does not end, not even by SIGKILL.`);
  } finally {
    process?.release();
    await removeDeadSocket(context, shim.address);
  }
};

/** Under the id of one that pods share there may be another by now, which was started after theirs had died. */
const holdsOf = async (effect: EffectOf<'StopShim'>): Promise<readonly HeldProcess[]> => {
  if (effect.shim === null || effect.shared !== undefined) return findShims(originOf(effect).id);
  const held = await holdProcess(effect.shim);
  return held === null ? [] : [held];
};

/**
 * Ends a shim that an earlier daemon has started, or what a StartShim that was cut short may have left running. It is
 * not asked: for a task that was deleted without it, it would stay. Resolves with whether there may have been one.
 */
const stopUnconnected = async (context: ShimContext, effect: EffectOf<'StopShim'>): Promise<boolean> => {
  const { timings, log } = context;
  const { podSandboxId, shim } = effect;
  const { dir } = originOf(effect);
  const processes = await holdsOf(effect);
  // A shim that nobody reads the log of hangs, deaf to SIGTERM. Without a bundle there is no log either.
  const logDrain = await openLogDrain(dir, log).catch((): LogDrain | null => null);
  try {
    // SIGTERM makes a shim tidy up its socket, SIGKILL does not.
    const ended = await Promise.all(processes.map((held) => seeEnd(held, [SIGTERM, SIGKILL], timings.shimExitMs)));
    if (!ended.every(Boolean)) {
      const message = `The shim of pod sandbox ${podSandboxId} does not end, not even by SIGKILL.`;
      throw new FailureError('ShimFailed', message);
    }
  } finally {
    for (const held of processes) held.release();
    logDrain?.close();
  }
  const address = shim?.address ?? (await readFile(join(dir, addressFileName), 'utf8').catch(() => ''));
  if (address !== '') await removeDeadSocket(context, address.trim()).catch(() => undefined);
  return shim === null || processes.length > 0;
};

/**
 * Ends the pod's shim and waits for its process to be gone; one that is gone already is success. Of one that other pods
 * have, nothing of this pod's is left: its tasks were deleted before.
 */
export const stopShim = (context: ShimContext, effect: EffectOf<'StopShim'>): Promise<EffectResults['StopShim']> =>
  attempting(`stop the shim of pod sandbox ${effect.podSandboxId}`, async () => {
    const { podSandboxId, handler, bundlePath, shared, hasSandbox = false } = effect;
    const live = context.shims.take(podSandboxId);
    if (shared?.isInUse === true) return {};
    try {
      const killed = await (live === undefined || (shared !== undefined && live.isGone())
        ? stopUnconnected(context, effect)
        : stopConnected(context, live, effect));
      // A sandbox may be more than its shim, which may have died long ago.
      if (killed || hasSandbox) {
        await context.binaries.delete(handler, podSandboxId, bundlePath);
        await removeLeftCgroup(context, bundlePath);
      }
      if (shared !== undefined) await rm(shared.dir, { recursive: true, force: true });
      return {};
    } finally {
      live?.close();
    }
  });
