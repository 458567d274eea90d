/**
 * What does not answer: mute shims, plugins and runtimes that hang, file systems that do. Knows how long the real adapters
 * wait for each, and what they do then; what they leave unbounded hangs until somebody mends the node.
 */
import type { EffectKind, EffectOf } from '../../src/domain/model/effects.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import { shimsOfProcess, type World } from './world.ts';

export type Kind = Exclude<EffectKind, 'WaitUntil'>;

/** Milliseconds until the adapter gives up, and whether it then does by force what was asked for. */
interface Bound {
  readonly ms: number;
  readonly byForce: boolean;
}

const givesUp = (ms: number): Bound => ({ ms, byForce: false });

/** src/adapters/shim/timings.ts. */
const MUTE_SHIM: { readonly [K in Kind]?: Bound } = {
  StartShim: givesUp(65_000),
  StartSandbox: givesUp(120_000),
  StopSandbox: givesUp(12_000),
  CreateTask: givesUp(20_000),
  StartTask: givesUp(120_000),
  KillTask: givesUp(30_000),
  DeleteTask: { ms: 45_000, byForce: true },
  StopShim: { ms: 13_000, byForce: true },
  ReconnectShim: givesUp(5_000),
  RunExec: givesUp(10_000),
  StreamExec: givesUp(10_000),
  EndExec: givesUp(45_000),
  UpdateContainer: givesUp(30_000),
  CheckpointTask: givesUp(60_000),
  EndCheckpoint: givesUp(30_000),
  CheckpointPod: givesUp(60_000),
  EndPodCheckpoint: givesUp(30_000),
};

/** cni.plugin_timeout, the shim binary, the OCI runtime, a registry that sends nothing. */
const HANGING: { readonly [K in Kind]?: Bound } = {
  AttachNetwork: givesUp(32_000),
  DetachNetwork: givesUp(32_000),
  StartShim: givesUp(60_000),
  CreateTask: givesUp(120_000),
  StartTask: givesUp(120_000),
  KillTask: givesUp(30_000),
  DeleteTask: givesUp(60_000),
  UpdateContainer: givesUp(30_000),
  PullImage: givesUp(60_000),
};

/** Calls into the kernel and to file systems: nobody can give them up. */
const UNBOUNDED: ReadonlySet<Kind> = new Set([
  'PreparePodSandbox',
  'CleanPodSandbox',
  'UnpinNamespaces',
  'PrepareContainer',
  'CleanContainer',
  'SyncImage',
  'DeleteImageContent',
]);

/** The longest that anything bounded takes. */
export const LONGEST_MS = 200_000;

const HANG_RATE = 0.06;

export const keyOf = (kind: Kind, effect: EffectOf<Kind>): string => {
  if ('containerId' in effect) return `${kind} ${effect.containerId}`;
  return 'podSandboxId' in effect ? `${kind} ${effect.podSandboxId}` : kind;
};

interface UnresponsiveOptions {
  readonly world: World;
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly mayHang: () => boolean;
}

/** What becomes of an effect that begins: it goes on (now, or after a while), or is given up with nothing or all of it done. */
interface Turns {
  readonly goOn: () => void;
  readonly giveUp: () => void;
}

/** Limits of what does not run are written into its spec: neither its shim nor an OCI runtime is asked. */
const asksNobody = (effect: EffectOf<Kind>): boolean => effect.kind === 'UpdateContainer' && !effect.hasTask;

export function awaitAnswer(
  { world, random, scheduler, mayHang }: UnresponsiveOptions,
  kind: Kind,
  effect: EffectOf<Kind>,
  { goOn, giveUp }: Turns,
): void {
  if (asksNobody(effect)) return goOn();
  const key = keyOf(kind, effect);
  const podSandboxId = 'podSandboxId' in effect ? effect.podSandboxId : '';
  const silence = world.mute.has(podSandboxId) ? MUTE_SHIM[kind] : undefined;
  if (silence !== undefined) {
    // A shim that speaks again in time has heard all that it was told.
    scheduler.after(silence.ms, () => (silence.byForce || !world.mute.has(podSandboxId) ? goOn() : giveUp()));
    return;
  }
  if (world.hung.has(key) || (UNBOUNDED.has(kind) && mayHang() && random.chance(HANG_RATE))) {
    world.hung.set(key, [...(world.hung.get(key) ?? []), goOn]);
    return;
  }
  const bound = HANGING[kind];
  if (bound !== undefined && mayHang() && random.chance(HANG_RATE)) return void scheduler.after(bound.ms, giveUp);
  goOn();
}

/** A shim says nothing to any of its pods for a while, or until it is mended. */
export function muteSomeShim(world: World, scheduler: Scheduler, random: Random): void {
  const { shims, mute } = world;
  const speaking = [...shims.values()].filter((shim) => shim.alive && !mute.has(shim.podSandboxId));
  if (speaking.length === 0) return;
  const { pid } = random.pick(speaking);
  const setMute = (isMute: boolean): void => {
    for (const { podSandboxId } of shimsOfProcess(world, pid))
      if (isMute) mute.add(podSandboxId);
      else mute.delete(podSandboxId);
  };
  setMute(true);
  if (random.chance(0.6)) scheduler.after(random.chance(0.5) ? 2_000 : 25_000, () => setMute(false));
}

/** Somebody mends the node: nothing fails whenever it is tried, and nothing hangs, any more. */
export function mend({ broken, mute, hung }: World): void {
  broken.clear();
  mute.clear();
  const waiting = [...hung.values()].flat();
  hung.clear();
  for (const goOn of waiting) goOn();
}
