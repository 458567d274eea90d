/**
 * Keeps the root file system of a container with users of its own where it is. It is mounted with the container's files, and not
 * by the shim; the binary of a shim that deletes a task unmounts it all the same, and a start that makes another task
 * would find a directory that nobody may look into.
 */
import { join } from 'node:path';
import { joinsUsers } from '../bundle-spec.ts';
import type { ShimContext } from '../context.ts';
import { rootfsOf } from '../paths.ts';

const BIND = { type: 'bind', options: ['bind'] } as const;

/** Does `work`, which may unmount it. What a daemon leaves that is killed meanwhile is taken up by whoever does it again. */
export const keepingRootfs = async (
  { mounts, files }: Pick<ShimContext, 'mounts' | 'files'>,
  bundlePath: string,
  work: () => Promise<void>,
): Promise<void> => {
  const rootfs = rootfsOf(bundlePath);
  const kept = join(bundlePath, 'kept-rootfs');
  const isMounted = async (path: string): Promise<boolean> =>
    (await files.isThere(path)) && (await files.isMountPoint(path));
  if (!(await joinsUsers(bundlePath, files.callsAt(bundlePath)))) return work();
  if (!(await isMounted(kept))) {
    if (!(await isMounted(rootfs))) return work();
    await files.makeDirectory(kept);
    await mounts.mount({ ...BIND, source: rootfs, target: kept });
  }
  try {
    await work();
  } finally {
    if (!(await isMounted(rootfs))) await mounts.mount({ ...BIND, source: kept, target: rootfs });
    await mounts.unmount(kept);
  }
};
