/** What is said of a pod that is restored from a checkpoint: by the request, by the checkpoint, and by the decision. Types only. */
import type { ContainerConfig, PodSandboxConfig } from './cri.ts';
import type { PodUserNamespace } from './user-namespace.ts';

export interface RestorePodRequest {
  readonly newId: string;
  /** Of its containers, in the order of their configs. */
  readonly newContainerIds: readonly string[];
  readonly checkpointPath: string;
  readonly config: PodSandboxConfig;
  readonly runtimeHandler: string;
  readonly containerConfigs: readonly ContainerConfig[];
}

/** What a container's image was called, and the image's id. */
export interface DescribedImage {
  readonly imageName: string;
  readonly imageId: string;
}

/** A container as the checkpoint of its pod describes it. */
export interface DescribedContainer extends DescribedImage {
  readonly name: string;
  /** Name of its archive in the checkpoint's directory. */
  readonly archive: string;
}

export interface DescribedPod {
  readonly containers: readonly DescribedContainer[];
  /** The users of its own that it had; null: the node's. */
  readonly users: PodUserNamespace | null;
}

export interface RestoredContainer {
  readonly containerId: string;
  readonly config: ContainerConfig;
  readonly imageId: string;
  /** Absent: none. */
  readonly mountedImages?: readonly { readonly image: string; readonly imageId: string }[];
  readonly checkpointArchive: string;
}

export interface PodRestore {
  readonly checkpointPath: string;
  readonly containers: readonly RestoredContainer[];
}
