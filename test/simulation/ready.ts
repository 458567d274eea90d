/**
 * Effects that get ready while what they follow is under way, as the first CNI plugin does: each that has is performed once or
 * dropped, unless its daemon dies.
 */
import type { EffectOf } from '../../src/domain/model/effects.ts';
import type { Perform } from '../../src/engine/ports.ts';
import { Violation } from './violation.ts';
import type { World } from './world.ts';

export const gettingReady = (
  { ready }: Pick<World, 'ready'>,
  perform: Perform<'AttachNetwork'>,
): Perform<'AttachNetwork'> =>
  Object.assign((...asked: Parameters<typeof perform>) => perform(...asked), {
    getReady(effect: EffectOf<'AttachNetwork'>) {
      const { podSandboxId } = effect;
      if (ready.has(podSandboxId)) throw new Violation(`The network of ${podSandboxId} is got ready twice.`);
      ready.add(podSandboxId);
      const end = (how: string): void => {
        if (!ready.delete(podSandboxId)) throw new Violation(`What was got ready for ${podSandboxId} is ${how} twice.`);
      };
      return {
        perform: (context: Parameters<typeof perform>[1]) => {
          end('performed');
          return perform(effect, context);
        },
        drop: () => end('dropped'),
      };
    },
  });
