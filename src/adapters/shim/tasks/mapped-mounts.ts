/**
 * The mounts through which a container sees volumes with mapped owners: there while its task gets its process, which then
 * has mounts of its own. None stays: kubelet takes volumes away while their containers are still listed.
 */
import { join } from 'node:path';
import type { MappedMounts } from '../../../domain/model/effects/task.ts';
import { mappedDir } from '../../../domain/model/paths.ts';
import { settleAll } from '../../../platform/linux/settle-all.ts';
import type { ShimContext } from '../context.ts';

export const whileMapped = async <T>(
  { mounts }: Pick<ShimContext, 'mounts'>,
  mapped: MappedMounts | undefined,
  create: () => Promise<T>,
): Promise<T> => {
  if (mapped === undefined) return create();
  try {
    await mounts.mountMapped(mapped);
    return await create();
  } finally {
    await settleAll(mapped.mounts.map(({ target }) => mounts.unmount(target)));
  }
};

/** For a task whose daemon may have ended before it was done with creating it: one that is there, or never will be. */
export const unmountMapped = async (
  { mounts, files }: Pick<ShimContext, 'mounts' | 'files'>,
  bundlePath: string,
): Promise<void> => {
  const dir = mappedDir(bundlePath);
  await settleAll((await files.namesIn(dir)).map((name) => mounts.unmount(join(dir, name))));
};
