/** Which images a node never gives up: told to clients of the daemon and of its past. */
import type { Config } from '../config/config.ts';

/** What the client's garbage collection has to leave alone: the sandbox image is in use whenever a pod is. */
export const pinnedNames = ({ images, runtime }: Pick<Config, 'images' | 'runtime'>): readonly string[] =>
  runtime.sandboxImage === null ? images.pinned : [...images.pinned, runtime.sandboxImage];
