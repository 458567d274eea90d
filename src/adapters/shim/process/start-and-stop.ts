/**
 * The effects StartShim and StopShim. One shim serves all containers of a pod: it is started from the pod's own bundle,
 * which is that of the pause task where there is one. One that several pods share is started from a directory of its own,
 * once, and spoken to over one connection; shims know tasks by their container's id and pods not at all. So one whose pod
 * has gone may be kept for the next (kept-shims.ts); it is started in a directory of its own too.
 */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import { type RuntimeHandler, takesRuncOptions } from '../../../domain/model/runtime-handler.ts';
import type { ShimAddress, ShimOrigin } from '../../../domain/model/tasks.ts';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { type HeldProcess, holdProcess } from '../../../platform/linux/processes.ts';
import type { ShimContext } from '../context.ts';
import { attempting } from '../failures.ts';
import { openLogDrain } from './log-drain.ts';
import { createLiveShim, dialShim, type LiveShim } from './live-shim.ts';
import { endConnected, endUnasked, removeDeadSocket } from './end-shim.ts';
import { findShims, identifyShim } from './identify.ts';
import { clearOrigin } from './left-shims.ts';
import { removeLeftCgroup } from '../tasks/kill-and-delete.ts';

/** Where shims up to 1.7 note their address; later ones note it nowhere. */
const addressFileName = 'address';

interface ShimEffect extends Pick<EffectOf<'StartShim'>, 'podSandboxId' | 'bundlePath' | 'shared'> {
  readonly shim?: ShimAddress | null;
}

/** What the pod's shim is, or was, started under, and where. */
export const originOf = ({ podSandboxId, bundlePath, shared, shim }: ShimEffect): ShimOrigin =>
  shim?.origin ?? shared ?? { id: podSandboxId, dir: bundlePath };

/** Nothing, where it is there. */
export const makeShimDir = async (dir: string): Promise<void> => {
  await mkdir(dir, { recursive: true, mode: 0o700 });
};

/** A shim reads its group there before it starts: without one it is the only one of its id. */
const makeOrigin = async (dir: string): Promise<void> => {
  await makeShimDir(dir);
  await writeFile(join(dir, 'config.json'), '{}', { mode: 0o600 });
};

const connectTo = async (
  { binaries, timings, log }: ShimContext,
  { id, dir }: ShimOrigin,
  handler: RuntimeHandler,
  told: Pick<ShimAddress, 'origin'>,
  release: (undo: () => void) => void,
): Promise<LiveShim> => {
  const logDrain = await openLogDrain(dir, log.child({ shimId: id }));
  release(logDrain.close);
  const { version, ...endpoint } = await binaries.start(handler, id, dir);
  const client = await dialShim(endpoint, timings.connectMs);
  release(client.close);
  const { shimPid: pid } = await client.connect({ id }, timings.connectMs);
  const startTicks = await identifyShim(pid, id, dir);
  const process = await holdProcess({ pid, startTicks });
  if (process === null) throw new FailureError('ShimFailed', `The shim (pid ${pid}) ended as soon as it had started.`);
  const shim: ShimAddress = { ...endpoint, pid, startTicks, ...told };
  return createLiveShim({ id, shim, version, process, logDrain, client, connectMs: timings.connectMs });
};

/** `told`: what the pod's records say of its origin, where that is neither the pod's own nor a shared one. */
const open = async (
  context: ShimContext,
  origin: ShimOrigin,
  handler: RuntimeHandler,
  told: Pick<ShimAddress, 'origin'> = {},
): Promise<LiveShim> => {
  const undo: (() => void)[] = [];
  try {
    return await connectTo(context, origin, handler, told, (release) => undo.push(release));
  } catch (error) {
    for (const release of undo) release();
    throw error;
  }
};

/** Shims that know pods, or serve several at a time, have one life with them. */
const mayBeKept = ({ kept }: ShimContext, { handler, shared }: EffectOf<'StartShim'>): boolean =>
  kept.isOn && shared === undefined && takesRuncOptions(handler) && handler.sandboxer !== 'shim';

/** One that another pod has had; else one is started in a place that outlives the pod's bundle. */
const openToKeep = async (
  context: ShimContext,
  { podSandboxId, handler }: EffectOf<'StartShim'>,
): Promise<LiveShim> => {
  const { binaries, shims, kept, paths, log } = context;
  const had = shims.get(podSandboxId);
  if (had?.isGone() === false) return had;
  const program = `${handler.name} ${await binaries.identify(handler)}`;
  const taken = await kept.take(program);
  if (taken !== null) {
    log.debug({ podSandboxId, shimId: taken.id, pid: taken.shim.pid }, 'a pod has a shim that was kept');
    return taken;
  }
  const id = `kept-${randomBytes(16).toString('hex')}`;
  const origin: ShimOrigin = { id, dir: join(paths.shimsDir, id) };
  try {
    await makeOrigin(origin.dir);
    const live = await open(context, origin, handler, { origin });
    kept.allow(live, program);
    return live;
  } catch (error) {
    // Nobody else could find it: the pod's records don't know where it was.
    await clearOrigin(context, origin).catch((left: unknown) =>
      log.warn({ shimId: id, error: messageOf(left) }, 'a shim that did not start is not cleared up yet'),
    );
    throw error;
  }
};

/**
 * The one that is there, once it has answered: who came to share a silent one would wait for it as long as a creation may take.
 * null: it ended meanwhile.
 */
const openShared = async (
  context: ShimContext,
  { handler }: EffectOf<'StartShim'>,
  { id, dir }: ShimOrigin,
): Promise<LiveShim | null> => {
  const opened = { isNew: false };
  const live = await context.shims.share(id, async () => {
    opened.isNew = true;
    await makeOrigin(dir);
    return open(context, { id, dir }, handler);
  });
  if (!opened.isNew && live?.isGone() === false) await (await live.client()).connect({ id }, context.timings.callMs);
  return live;
};

/** Starts the pod's shim, or finds the one that another pod, or an earlier try, has started: `start` tells that by itself. */
export const startShim = (context: ShimContext, effect: EffectOf<'StartShim'>): Promise<EffectResults['StartShim']> =>
  attempting(`start the shim of pod sandbox ${effect.podSandboxId}`, async () => {
    const { podSandboxId, handler, shared } = effect;
    const openOwn = (): Promise<LiveShim> =>
      mayBeKept(context, effect) ? openToKeep(context, effect) : open(context, originOf(effect), handler);
    const live = await (shared === undefined ? openOwn() : openShared(context, effect, shared));
    if (live === null || live.isGone())
      throw new FailureError('ShimFailed', `The shim ${originOf(effect).id} ended before the pod had it.`);
    context.shims.add(podSandboxId, live);
    return { shim: live.shim };
  });

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
  const { podSandboxId, shim } = effect;
  const { dir } = originOf(effect);
  const processes = await holdsOf(effect);
  try {
    if (!(await endUnasked(context, dir, processes))) {
      const message = `The shim of pod sandbox ${podSandboxId} does not end, not even by SIGKILL.`;
      throw new FailureError('ShimFailed', message);
    }
  } finally {
    for (const held of processes) held.release();
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
    const { shims, kept, swept, temporaryFiles } = context;
    const live = shims.take(podSandboxId);
    if (live?.isGone() !== false) temporaryFiles.shimDied();
    if (shared?.isInUse === true || (live !== undefined && kept.keep(live))) return {};
    // It was let go of before, and may be another pod's by now.
    if (live === undefined && effect.shim !== null && kept.isKnown(effect.shim)) return {};
    if (effect.shim === null) await swept;
    const own = shared ?? (live?.shim ?? effect.shim)?.origin;
    try {
      const killed = await (live === undefined || (shared !== undefined && live.isGone())
        ? stopUnconnected(context, effect)
        : endConnected(context, live, hasSandbox));
      if (killed) temporaryFiles.shimDied();
      // A sandbox may be more than its shim, which may have died long ago.
      if (killed || hasSandbox) {
        await context.binaries.delete(handler, podSandboxId, bundlePath);
        await removeLeftCgroup(context, bundlePath);
      }
      if (own !== undefined) await rm(own.dir, { recursive: true, force: true });
      return {};
    } finally {
      live?.close();
    }
  });
