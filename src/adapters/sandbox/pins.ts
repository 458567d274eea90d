/**
 * Performs PinNamespaces and UnpinNamespaces for pods without a pause task. Both are asked of the spawner, one request
 * each way; doing either again is safe. Lets whoever needs a pod's namespaces wait for those that are being made.
 */
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { EffectOf } from '../../domain/model/effects.ts';
import { pinPaths } from '../../domain/pod-sandbox/sandboxer.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import { createPathCleaner, makeDirectory } from '../../platform/linux/files.ts';
import { settleAll } from '../../platform/linux/settle-all.ts';
import type { Spawner } from '../../platform/spawner/types.ts';

export interface PinsDependencies {
  readonly spawner: Pick<Spawner, 'pinNamespaces' | 'unmount'>;
  /** The daemon's root and state directories: nothing outside of them is made or removed. */
  readonly roots: readonly string[];
}

export interface Pins {
  readonly effects: Pick<PerformEffects, 'PinNamespaces' | 'UnpinNamespaces'>;
  /** Settles as a PinNamespaces of that pod does which is under way; at once when none is. */
  readonly whenPinned: (podSandboxId: string) => Promise<void>;
}

export const createPins = ({ spawner, roots }: PinsDependencies): Pins => {
  const { check } = createPathCleaner(roots, spawner.unmount);
  const underWay = new Map<string, Promise<void>>();

  const pin = async ({ pins, hostname, sysctls }: EffectOf<'PinNamespaces'>): Promise<void> => {
    const paths = pinPaths(pins);
    for (const path of paths) check(path);
    await Promise.all(paths.map((path) => makeDirectory(dirname(path))));
    await spawner.pinNamespaces({ pins, hostname, sysctls });
  };

  return {
    effects: {
      PinNamespaces: async (effect) => {
        const { podSandboxId } = effect;
        const pinning = pin(effect);
        underWay.set(podSandboxId, pinning);
        try {
          await pinning;
          return {};
        } finally {
          underWay.delete(podSandboxId);
        }
      },
      UnpinNamespaces: async ({ pins }) => {
        const paths = pinPaths(pins);
        for (const path of paths) check(path);
        await settleAll(
          paths.map(async (path) => {
            await spawner.unmount(path);
            await rm(path, { force: true });
          }),
        );
        return {};
      },
    },
    whenPinned: (podSandboxId) => underWay.get(podSandboxId) ?? Promise.resolve(),
  };
};
