/**
 * What specs are built from. All of it is in the journal (configs, facts, settings), so a spec can be built again at
 * any time and comes out the same (C13). Data only.
 */
import type { SpecSettings } from '../model/spec-settings.ts';
import type { ContainerConfig, PodSandboxConfig } from '../model/cri.ts';
import type { ContainerFacts } from '../model/container-facts.ts';
import type { ImageConfig } from '../model/image-content.ts';
import type { NamespacePins } from '../model/sandboxer.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import type { SelinuxLabels } from '../model/selinux.ts';

/** Host paths of what a pod's containers share. */
export interface SandboxPaths {
  readonly resolvConf: string;
  readonly hosts: string;
  readonly hostname: string;
  readonly shm: string;
}

export interface PodSandboxSpecInput {
  /** Absent: nothing is labelled. */
  readonly selinux?: SelinuxLabels;
  readonly podSandboxId: string;
  readonly config: PodSandboxConfig;
  readonly node: NodeFacts;
  readonly settings: SpecSettings;
  /** null with the host's network. */
  readonly netnsPath: string | null;
  readonly paths: SandboxPaths;
  readonly pause: {
    /** Absolute, or relative to the bundle. */
    readonly rootfsPath: string;
    readonly imageName: string;
    /** A numeric user at most: there is nobody to look names up. */
    readonly imageConfig: ImageConfig;
  };
}

/** A volume that the image declares, and the directory on the host that stands for it. */
export interface ImageVolume {
  readonly imagePath: string;
  readonly hostPath: string;
}

/** An image that the config mounts, and the directory on the host where it is seen. */
export interface ImageMount {
  /** As the config names it. */
  readonly image: string;
  readonly chainIds: readonly string[];
  readonly hostPath: string;
}

export interface ContainerSpecInput {
  /** The pod's; absent: nothing is labelled. */
  readonly selinux?: SelinuxLabels;
  readonly containerId: string;
  readonly config: ContainerConfig;
  readonly podSandboxId: string;
  readonly sandboxConfig: PodSandboxConfig;
  readonly imageConfig: ImageConfig;
  readonly facts: ContainerFacts;
  readonly node: NodeFacts;
  readonly settings: SpecSettings;
  /** null with the host's network. */
  readonly netnsPath: string | null;
  readonly paths: SandboxPaths;
  /**
   * Process of the pod whose namespaces are joined: the pause task; 0 when there is none; null where the shim holds the
   * pod elsewhere and gives containers their namespaces there.
   */
  readonly sandboxPid: number | null;
  /** What is joined instead where the pod has no pause task. */
  readonly pins: NamespacePins | null;
  /** Process of the container that namespace_options.target_id names; null without one. */
  readonly targetPid: number | null;
  readonly imageVolumes: readonly ImageVolume[];
  readonly imageMounts: readonly ImageMount[];
  /** Where what is seen through the pod's user namespace is mounted; null where the pod has none. */
  readonly mappedDir: string | null;
}
