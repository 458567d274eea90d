/**
 * Performs PrepareContainer and CleanContainer: what a container has on disk before its task is created and after it is
 * deleted, and the images that are mounted for it. Its image and its spec were decided before. Doing either again is
 * safe.
 */
import { dirname, join } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { IMAGE_VOLUMES_MAX } from '../../domain/model/image-content.ts';
import type { Bundle, LaunchedTask, Mount } from '../../domain/model/tasks.ts';
import type { ImageVolume } from '../../domain/oci/input.ts';
import { labelledMount } from '../../domain/oci/selinux.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import type { Snapshots, UnpackCheckpoint } from '../images/snapshots-port.ts';
import { createPathCleaner, type Files } from '../../platform/linux/files.ts';
import { keepFreeSpace } from '../../platform/linux/free-space.ts';
import type { Relabel } from '../../platform/linux/selinux.ts';
import { createSemaphore } from '../../platform/linux/semaphore.ts';
import { settleAll } from '../../platform/linux/settle-all.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import type { WriteBundle } from './bundles.ts';
import { mountImage } from './image-mount.ts';
import { fillImageVolume } from './image-volume.ts';
import { mountMappedOverlay } from './mapped-overlay.ts';

export interface BundleDependencies {
  readonly writeBundle: WriteBundle;
  readonly snapshots: Pick<Snapshots, 'prepare' | 'view' | 'remove' | 'layerDirs'>;
  readonly unpackCheckpoint: UnpackCheckpoint;
  readonly spawner: Pick<Spawner, 'mount' | 'mountMapped' | 'unmount'>;
  /** Labels trees of files (SELinux). */
  readonly relabel: Relabel;
  /** The daemon's root and state directories: nothing outside of them is made or removed. */
  readonly roots: readonly string[];
  readonly files: Files;
  /** Image volumes leave as much of the file system free: the journal is on it too. */
  readonly reservedBytes: number;
}

/** Copied between two looks at what is free. */
const SPACE_CHECK_BYTES = 32 * 1024 * 1024;

export const createBundleEffects = ({
  writeBundle,
  snapshots,
  unpackCheckpoint,
  spawner,
  relabel,
  roots,
  files,
  reservedBytes,
}: BundleDependencies): Pick<PerformEffects, 'PrepareContainer' | 'CleanContainer'> => {
  const cleaner = createPathCleaner(roots, spawner.unmount, files);

  /** One volume is copied after the other, whatever containers they are of. */
  const inTurn = createSemaphore(1);

  const fillVolumes = async (
    layerDirs: readonly string[],
    volumes: readonly ImageVolume[],
    signal: AbortSignal,
  ): Promise<void> => {
    for (const { imagePath, hostPath } of volumes) {
      await inTurn(signal, async () => {
        const directory = dirname(hostPath);
        await files.makeDirectory(directory);
        const message = `The disk is too full to copy the image's volume at ${imagePath}: make room and create the container again.`;
        const keep = keepFreeSpace({ directory, reservedBytes, everyBytes: SPACE_CHECK_BYTES, message });
        await fillImageVolume(layerDirs, imagePath, hostPath, async (sizeBytes) => {
          signal.throwIfAborted();
          await keep(sizeBytes);
        });
      });
    }
  };

  /** For a pod with users of its own; all other root file systems are mounted by shims. */
  const mountRootfs = async ({ path }: Bundle, holder: LaunchedTask, rootfs: readonly Mount[]): Promise<void> => {
    const target = join(path, 'rootfs');
    if (await files.isMountPoint(target)) return;
    for (const mount of rootfs)
      if (mount.type === 'overlay') await mountMappedOverlay(spawner, holder, mount, join(path, 'layers'), target);
      else await spawner.mount({ ...mount, target });
  };

  return {
    PrepareContainer: async (effect, { signal }) => {
      const { containerId, bundle, chainIds, imageVolumes, imageMounts, labels, users, checkpoint } = effect;
      if (checkpoint !== undefined) cleaner.check(checkpoint.dir);
      for (const path of [bundle.path, ...[...imageVolumes, ...imageMounts].map(({ hostPath }) => hostPath)])
        cleaner.check(path);
      if (imageVolumes.length > IMAGE_VOLUMES_MAX) {
        const message = `The image declares ${imageVolumes.length} volumes, more than ${IMAGE_VOLUMES_MAX}: use another.`;
        throw new FailureError('ImageInvalid', message);
      }
      const layerDirs = imageVolumes.length === 0 ? [] : snapshots.layerDirs(chainIds);
      const rootfs = snapshots
        .prepare(containerId, chainIds, users)
        .then((mounts) => mounts.map((mount) => labelledMount(mount, labels?.mount)));
      const volumes = fillVolumes(layerDirs, imageVolumes, signal);
      const mounts = imageMounts.map((image) =>
        mountImage({ snapshots, spawner }, image, users?.holder, labels?.mount),
      );
      const restored =
        checkpoint === undefined ? [] : [rootfs.then(() => unpackCheckpoint(containerId, checkpoint, signal))];
      await settleAll([rootfs, ...restored, writeBundle(bundle), volumes, ...mounts]);
      if (labels !== undefined)
        await relabel([...imageVolumes.map(({ hostPath }) => hostPath), ...labels.paths], labels.mount, signal);
      if (users !== undefined) await mountRootfs(bundle, users.holder, await rootfs);
      return { rootfs: await rootfs };
    },
    CleanContainer: async ({ containerId, paths }) => {
      // The snapshot may be mounted in the bundle until then. It may be large, which is not for the daemon's own loop.
      await cleaner.clean(paths, () => snapshots.remove(containerId));
      return {};
    },
  };
};
