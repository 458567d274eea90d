/**
 * How any effect is performed in the simulated world: slowly, failing before, failing after half of the work, and dying
 * with the daemon at any of three moments. Knows no effect by name.
 */
import type { EffectKind, EffectOf, EffectResults } from '../../src/domain/model/effects.ts';
import { FailureError, type FailureReason } from '../../src/domain/model/errors.ts';
import type { Observe } from '../../src/engine/ports.ts';
import type { EffectMoment } from './boundaries.ts';
import type { Dimensions } from './dimensions.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';
import { awaitAnswer, keyOf, type Kind } from './unresponsive.ts';
import type { World } from './world.ts';

export interface SimulatedEffectsOptions {
  readonly world: World;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly dimensions: Dimensions;
  /** True once the daemon that asked has died: nothing more happens on its behalf. */
  readonly isDead: () => boolean;
  /** Tells the history that a boundary was reached; it may kill the daemon there. */
  readonly reached: (kind: Exclude<EffectKind, 'WaitUntil'>, moment: EffectMoment) => void;
  /** Nothing fails, and nothing takes long. */
  readonly isCalm: () => boolean;
  /** Checks that hold whenever an effect begins; throws a violation. */
  readonly check: (kind: EffectKind, effect: EffectOf<EffectKind>) => void;
  readonly observe: () => Observe;
}

export type Work<K extends Kind> = (effect: EffectOf<K>, half: () => void) => EffectResults[K];

export const fail = (reason: FailureReason, message: string): never => {
  throw new FailureError(reason, message);
};

/** Thrown inside a half-done effect when the daemon dies: nobody is there to hear how it ended. */
export const DIED = new Error('the daemon died');

const FAILURE_RATE = 0.03;
const HANG_RATE = 0.02;

/** What may fail again and again, whoever tries it. */
const LASTING: ReadonlySet<Kind> = new Set([
  'CleanPodSandbox',
  'RemoveNetns',
  'UnpinNamespaces',
  'DetachNetwork',
  'StopShim',
  'CleanContainer',
  'KillTask',
  'DeleteTask',
  'DeleteImageContent',
]);
const LASTING_RATE = 0.2;

/** Waits, works in two halves, and answers; the daemon may die before, between and after. */
export const faultyPerformance = (options: SimulatedEffectsOptions) => {
  const { scheduler, random, isDead, reached, isCalm, dimensions } = options;
  const lastingRate = dimensions.failuresLast ? 0.8 : LASTING_RATE;
  const unresponsive = { ...options, mayHang: () => dimensions.effectsHang && !isCalm() };
  const failureRate = (): number => (isCalm() ? 0 : FAILURE_RATE);
  return <K extends Kind>(kind: K, delayMs: number, work: Work<K>) =>
    (effect: EffectOf<K>): Promise<EffectResults[K]> =>
      new Promise((resolve, reject) => {
        const fails = (error: unknown): void => {
          if (error === DIED) return;
          options.world.failures += 1;
          scheduler.after(delayMs * 0.3, () => void (isDead() ? undefined : reject(error)));
        };
        const goOn = (): void => {
          if (isDead()) return;
          try {
            if (options.world.broken.has(keyOf(kind, effect))) fail('HostFailed', `${kind} fails until it is mended`);
            if (random.chance(failureRate())) {
              if (LASTING.has(kind) && random.chance(lastingRate)) options.world.broken.add(keyOf(kind, effect));
              fail('HostFailed', `${kind} failed before it began`);
            }
            const halfFails = random.chance(failureRate());
            const half = (): void => {
              reached(kind, 'half');
              if (isDead()) throw DIED;
              if (halfFails) fail('HostFailed', `${kind} failed half-way`);
            };
            const result = work(effect, half);
            reached(kind, 'after');
            if (isDead()) return;
            scheduler.after(delayMs * 0.3, () => void (isDead() ? undefined : resolve(result)));
          } catch (error) {
            fails(error);
          }
        };
        const giveUp = (): void => {
          if (isDead()) return;
          try {
            // Whether it was carried out can't be told.
            if (random.chance(0.3)) work(effect, () => undefined);
            fail('TimedOut', `${kind} was not answered`);
          } catch (error) {
            fails(error);
          }
        };
        const go = (): void => {
          if (isDead()) return;
          reached(kind, 'before');
          if (isDead()) return;
          try {
            options.check(kind, effect);
          } catch (error) {
            return fails(error);
          }
          awaitAnswer(unresponsive, kind, effect, { goOn, giveUp });
        };
        // Now and then something hangs for a long while.
        scheduler.after(random.chance(isCalm() ? 0 : HANG_RATE) ? 30_000 : delayMs, go);
      });
};
