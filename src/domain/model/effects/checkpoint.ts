/** Effects that write down what tasks are doing, of one container or of a pod, and what their success says. Types only. */
import type { PodSandboxConfig } from '../cri.ts';
import type { PodUserNamespace } from '../user-namespace.ts';
import type { DescribedImage, DescribedPod } from '../pod-restore.ts';
import type { Mount } from '../tasks.ts';

/** A task that is checkpointed, with where the parts of that are put together; those are gone afterwards. */
export interface CheckpointedTask {
  readonly containerId: string;
  readonly bundlePath: string;
  readonly workDir: string;
}

export interface TaskCheckpoint extends CheckpointedTask {
  readonly podSandboxId: string;
  readonly rootfs: readonly Mount[];
  readonly location: string;
  /** What the archive says of the container, beside the spec. */
  readonly description: Readonly<Record<string, string>>;
  readonly timeoutMs: number | null;
}

export type CheckpointEffect =
  /** Writes a task's state into an archive at `location` (whole or not at all); the task runs on. */
  | ({ readonly kind: 'CheckpointTask' } & TaskCheckpoint)
  /** Has a task run on that a checkpoint left frozen, and removes what there is of its archive. */
  | ({ readonly kind: 'EndCheckpoint'; readonly location: string } & CheckpointedTask)
  /**
   * Freezes the tasks together and writes the state of each into an archive of the directory, which is empty or made; all
   * of that, with a description of the pod, or nothing. The tasks run on.
   */
  | {
      readonly kind: 'CheckpointPod';
      readonly podSandboxId: string;
      readonly outputPath: string;
      readonly containers: readonly TaskCheckpoint[];
      readonly description: {
        readonly runtimeHandler: string;
        readonly config: PodSandboxConfig;
        /** The users of its own that it has; null: the node's. */
        readonly users: PodUserNamespace | null;
      };
    }
  /** Has tasks run on that a checkpoint of their pod left frozen, and removes what there is of that. */
  | {
      readonly kind: 'EndPodCheckpoint';
      readonly podSandboxId: string;
      readonly outputPath: string;
      readonly containers: readonly CheckpointedTask[];
    }
  /** Reads what such a directory describes, where the node can restore it; changes nothing. */
  | { readonly kind: 'ReadPodCheckpoint'; readonly checkpointPath: string }
  /** Reads what an archive of one container describes, where the node can restore it; changes nothing. */
  | ({ readonly kind: 'ReadCheckpoint'; readonly location: string } & KnownDigests);

/** Digests (sha256:…) of the archives that this node wrote: only those are used, and what somebody who is trusted signed. */
interface KnownDigests {
  readonly knownDigests: readonly string[];
}

/** An archive that CheckpointTask wrote, as somebody says. */
export interface GivenArchive extends KnownDigests {
  readonly path: string;
}

/** Where a container is restored from, and where that is unpacked. */
export interface CheckpointArchive extends GivenArchive {
  readonly dir: string;
}

/** What was written. Absent: by a scribe that did not say. */
interface WrittenArchives {
  /** Digests (sha256:…) of the archives. */
  readonly digests?: readonly string[];
}

export interface CheckpointResults {
  readonly CheckpointTask: WrittenArchives;
  readonly EndCheckpoint: Record<string, never>;
  readonly CheckpointPod: WrittenArchives;
  readonly EndPodCheckpoint: Record<string, never>;
  readonly ReadPodCheckpoint: { readonly pod: DescribedPod };
  readonly ReadCheckpoint: { readonly image: DescribedImage };
}

/** Which containers of a pod are checkpointed together, and into which directory. */
export interface PodCheckpoint {
  readonly outputPath: string;
  readonly containerIds: readonly string[];
}

/** What their intents say; null for nothing. */
export interface CheckpointIntents {
  readonly CheckpointTask: { readonly location: string; readonly timeoutMs: number | null };
  readonly EndCheckpoint: { readonly location: string };
  readonly CheckpointPod: PodCheckpoint;
  readonly EndPodCheckpoint: PodCheckpoint;
  readonly ReadPodCheckpoint: { readonly checkpointPath: string };
  readonly ReadCheckpoint: { readonly location: string };
}
