/**
 * What containers need of the image store's unpacked layers: a writable root file system, and the layers' own
 * directories to look into. The images adapter implements it; bundles and container questions are made with it.
 * Must hold no decision: which image a container gets, and when its snapshot goes, is asked for by effects.
 */
import type { CheckpointArchive } from '../../domain/model/effects/checkpoint.ts';
import type { Mount } from '../../domain/model/tasks.ts';
import type { PodUserNamespace } from '../../domain/model/user-namespace.ts';

export interface Snapshots {
  /**
   * Makes the container's writable layer on top of the image's layers (`chainIds`, base first) and says how to mount
   * it. Doing it again keeps what the layer holds and gives the same mounts. Rejects with FailureError HostFailed
   * when a layer is not there or the directories can't be made. The layer's root belongs to whom the image says, in
   * the ids of `users` where these are given.
   */
  readonly prepare: (
    containerId: string,
    chainIds: readonly string[],
    users?: PodUserNamespace,
  ) => Promise<readonly Mount[]>;
  /**
   * How to mount the layers (`chainIds`, base first) as one tree that nobody can write to; null when there are none.
   * Rejects with FailureError HostFailed when a layer is not there, or when they are too many for one mount.
   */
  readonly view: (chainIds: readonly string[]) => Promise<Mount | null>;
  /** Removes the container's writable layer; one that is not there is success. */
  readonly remove: (containerId: string) => Promise<void>;
  /**
   * Absolute directories of the unpacked layers in the order of `chainIds` (base first), in overlayfs' own form:
   * a 0:0 character device hides a name, trusted.overlay.opaque=y hides what lower layers hold in a directory.
   * They never change once unpacked. Throws FailureError HostFailed for a malformed chain id.
   */
  readonly layerDirs: (chainIds: readonly string[]) => readonly string[];
}

/**
 * Unpacks a checkpoint's archive for a container whose writable layer is there and is not mounted. Doing it again begins
 * anew. Rejects with FailureError InvalidField for an archive that is none, and leaves nothing beside the layer then.
 */
export type UnpackCheckpoint = (containerId: string, archive: CheckpointArchive, signal: AbortSignal) => Promise<void>;
