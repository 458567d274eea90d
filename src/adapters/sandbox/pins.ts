/**
 * Performs PinNamespaces and UnpinNamespaces for pods without a pause task. Both are asked of the spawner, one request
 * each way; doing either again is safe.
 */
import { pinPaths } from '../../domain/pod-sandbox/sandboxer.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import { checkBelow } from '../../platform/linux/files.ts';
import type { Spawner } from '../../platform/spawner/types.ts';

export interface PinsDependencies {
  readonly spawner: Pick<Spawner, 'pinNamespaces' | 'unpin'>;
  /** The daemon's root and state directories: nothing outside of them is made or removed. */
  readonly roots: readonly string[];
}

export const createPinEffects = ({
  spawner,
  roots,
}: PinsDependencies): Pick<PerformEffects, 'PinNamespaces' | 'UnpinNamespaces'> => {
  return {
    PinNamespaces: async ({ pins, hostname, sysctls }) => {
      const paths = pinPaths(pins);
      for (const path of paths) checkBelow(roots, path);
      await spawner.pinNamespaces({ pins, hostname, sysctls });
      return {};
    },
    UnpinNamespaces: async ({ pins }) => {
      const paths = pinPaths(pins);
      for (const path of paths) checkBelow(roots, path);
      await spawner.unpin(paths);
      return {};
    },
  };
};
