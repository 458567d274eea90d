/**
 * Mounts an image where a container is to have it as a volume: its layers as one tree, which nobody can write to.
 * Unmounting is left to whoever cleans the directory that it is mounted in.
 */
import type { EffectOf } from '../../domain/model/effects.ts';
import type { LaunchedTask } from '../../domain/model/tasks.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { IMAGE_VOLUME_FAILED } from '../../domain/image/mounted.ts';
import { labelledMount } from '../../domain/oci/selinux.ts';
import type { Snapshots } from '../images/snapshots-port.ts';
import { isMountPoint, makeDirectory } from '../../platform/linux/files.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { mountMappedOverlay } from './mapped-overlay.ts';

type ImageMount = EffectOf<'PrepareContainer'>['imageMounts'][number];

export interface ImageMountDependencies {
  readonly snapshots: Pick<Snapshots, 'view'>;
  readonly spawner: Pick<Spawner, 'mount' | 'mountMapped' | 'unmount'>;
}

/** Makes the directory `hostPath` and mounts the image there, unless it is; for the users of `holder` and with a label if
 * they are given.
 * Rejects with what kubelet looks for. */
export const mountImage = async (
  { snapshots, spawner }: ImageMountDependencies,
  { chainIds, hostPath }: ImageMount,
  holder: LaunchedTask | undefined,
  mountLabel: string | undefined,
): Promise<void> => {
  try {
    await makeDirectory(hostPath);
    if (await isMountPoint(hostPath)) return;
    const whole = await snapshots.view(chainIds);
    if (whole === null) return;
    const view = labelledMount(whole, mountLabel);
    if (holder === undefined) await spawner.mount({ ...view, target: hostPath });
    else await mountMappedOverlay(spawner, holder, view, `${hostPath}-layers`, hostPath);
  } catch (cause) {
    const reason = cause instanceof FailureError ? cause.failure.reason : 'HostFailed';
    throw new FailureError(reason, `${IMAGE_VOLUME_FAILED}: ${messageOf(cause)}`, { cause });
  }
};
