/**
 * Commands and sessions that last, in some histories: they go on until their client leaves, their time is up, or their
 * task or its shim ends. A connection to a port outlives even its pod.
 */
import type { EffectOf, EffectResults } from '../../src/domain/model/effects.ts';
import { FailureError } from '../../src/domain/model/errors.ts';
import type { EffectContext } from '../../src/engine/ports.ts';
import type { SimulatedEffectsOptions } from './faulty-performance.ts';
import { type SimulatedTask, shimOf } from './world.ts';

type SessionKind = 'RunExec' | 'StreamExec' | 'StreamAttach' | 'StreamPort';

/** Its client left; its task ended; nobody is left who could say how it ends; its time was up. */
type End = 'left' | 'ended' | 'lost' | 'timed out';

const LASTING_RATE = 0.5;
const LOOK_MS = 400;
const NS_PER_MS = 1_000_000n;

interface Session<K extends SessionKind> {
  /** As it is performed when it takes a moment only. */
  readonly brief: (effect: EffectOf<K>) => Promise<EffectResults[K]>;
  readonly begin: (effect: EffectOf<K>) => Promise<unknown>;
  readonly end: (effect: EffectOf<K>, end: End) => EffectResults[K];
}

export const lastingSessions = (options: SimulatedEffectsOptions) => {
  const { world, scheduler, random, isDead, isCalm, dimensions } = options;

  const taskOf = ({
    podSandboxId,
    containerId,
  }: {
    podSandboxId: string;
    containerId: string;
  }): SimulatedTask | undefined => shimOf(world, podSandboxId)?.tasks.get(containerId);

  function endOf(effect: EffectOf<SessionKind>, sinceNs: bigint, { callerGone }: EffectContext): End | null {
    if (callerGone?.aborted === true) return 'left';
    if (effect.kind === 'StreamPort') return null;
    if (shimOf(world, effect.podSandboxId) === undefined) return 'lost';
    if (taskOf(effect)?.status !== 'running') return 'ended';
    const timeoutMs = effect.kind === 'RunExec' ? effect.timeoutMs : null;
    const isOver = timeoutMs !== null && scheduler.monoNs() - sinceNs > BigInt(timeoutMs) * NS_PER_MS;
    return isOver ? 'timed out' : null;
  }

  const over = (effect: EffectOf<SessionKind>, context: EffectContext): Promise<End> =>
    new Promise((resolve) => {
      const sinceNs = scheduler.monoNs();
      const look = (): void => {
        if (isDead()) return;
        const end = endOf(effect, sinceNs, context);
        if (end === null) scheduler.after(LOOK_MS, look);
        else resolve(end);
      };
      look();
    });

  return <K extends SessionKind>({ brief, begin, end }: Session<K>) =>
    async (effect: EffectOf<K>, context: EffectContext): Promise<EffectResults[K]> => {
      if (!dimensions.sessionsLast || isCalm() || !random.chance(LASTING_RATE)) return brief(effect);
      await begin(effect);
      const ended = await over(effect, context);
      if ('execId' in effect) taskOf(effect)?.execs.delete(effect.execId);
      if (ended === 'lost') {
        world.failures += 1;
        throw new FailureError('ShimFailed', 'the shim is gone');
      }
      return end(effect, ended);
    };
};

/** A command that was killed because nobody waits for it any more. */
export function exitAfter(end: End): { readonly exitStatus: number } {
  if (end === 'left') throw new FailureError('Cancelled', 'The caller went away, so the command was killed.');
  return { exitStatus: 137 };
}
