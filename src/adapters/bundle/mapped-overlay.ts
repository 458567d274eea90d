/**
 * Mounts image layers for a pod with users of its own: overlayfs cannot be mounted with mapped ids, but it can be made of
 * layers that are. They are mounted so for the moment in which the overlay is made, which keeps them for itself.
 */
import { join } from 'node:path';
import type { LaunchedTask, Mount } from '../../domain/model/tasks.ts';
import { makeDirectory } from '../../platform/linux/files.ts';
import { settleAll } from '../../platform/linux/settle-all.ts';
import type { Spawner } from '../../platform/spawner/types.ts';

const LOWER = 'lowerdir=';

/**
 * Mounts the overlay at `target`, the owners of its lower layers' files seen through the user namespace of `holder`.
 * `dir` is for the layers meanwhile; it stays, with nothing in it mounted. Layers have short names there, so that any
 * number that overlayfs takes fits into the options.
 */
export const mountMappedOverlay = async (
  spawner: Pick<Spawner, 'mount' | 'mountMapped' | 'unmount'>,
  holder: LaunchedTask,
  overlay: Mount,
  dir: string,
  target: string,
): Promise<void> => {
  const lower =
    overlay.options
      .find((option) => option.startsWith(LOWER))
      ?.slice(LOWER.length)
      .split(':') ?? [];
  const mounts = lower.map((source, index) => ({ source, target: join(dir, String(index)) }));
  const names = lower.map((_, index) => index).join(':');
  const options = overlay.options.map((option) => (option.startsWith(LOWER) ? LOWER + names : option));
  await makeDirectory(dir);
  try {
    await spawner.mountMapped({ holder, mounts });
    await spawner.mount({ ...overlay, target, options, from: dir });
  } finally {
    await settleAll(mounts.map((mount) => spawner.unmount(mount.target)));
  }
};
