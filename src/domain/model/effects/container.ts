/**
 * Effects on one container beside the life of its task (its files, log and limits), and what their success
 * says. Types only.
 */
import type { LinuxContainerResources } from '../cri.ts';
import type { ContainerFacts, ContainerQuestions } from '../container-facts.ts';
import type { NriResources } from '../nri.ts';
import type { OciResources } from '../oci.ts';
import type { CheckpointArchive } from './checkpoint.ts';
import type { PodUserNamespace } from '../user-namespace.ts';
import type { Bundle, ContainerLog, LaunchedTask, Mount } from '../tasks.ts';

export type ContainerEffect =
  /** Answers the questions; reads only, but for missing mount directories. */
  | { readonly kind: 'InspectContainer'; readonly containerId: string; readonly questions: ContainerQuestions }
  /** Makes the writable snapshot, image volumes, image mounts and the bundle; secret tokens in the spec's env are filled in here. */
  | {
      readonly kind: 'PrepareContainer';
      readonly containerId: string;
      readonly bundle: Bundle;
      readonly chainIds: readonly string[];
      /** Volumes that the image declares: content at imagePath is copied up into hostPath. */
      readonly imageVolumes: readonly { readonly imagePath: string; readonly hostPath: string }[];
      /** Images to be seen, read-only, at hostPath; chain ids of their layers, base first. */
      readonly imageMounts: readonly { readonly chainIds: readonly string[]; readonly hostPath: string }[];
      /** What its files are labelled with (SELinux), and paths of the node that are labelled so as well; absent: nothing. */
      readonly labels?: { readonly mount: string; readonly paths: readonly string[] };
      /** The pod's own users and a process that has them: the rootfs is mounted in the bundle for them. */
      readonly users?: PodUserNamespace & { readonly holder: LaunchedTask };
      /** Unpacked, its changed files into the writable snapshot; absent: the container starts anew. */
      readonly checkpoint?: CheckpointArchive;
    }
  | { readonly kind: 'CleanContainer'; readonly containerId: string; readonly paths: readonly string[] }
  | { readonly kind: 'ReopenLog'; readonly containerId: string; readonly log: ContainerLog }
  /** Puts limits in force for a task that runs, then into the bundle's spec; a task that has ended has no use for them. */
  | {
      readonly kind: 'UpdateContainer';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly bundlePath: string;
      readonly hasTask: boolean;
      readonly resources: OciResources;
      /** What the request says of the change, for the shim; absent: nothing. */
      readonly annotations?: Readonly<Record<string, string>>;
      /** What is put in force again when the OCI runtime refuses a part of `resources`. */
      readonly previous: OciResources;
      readonly oomScoreAdj: number;
    };

export interface ContainerResults {
  readonly InspectContainer: { readonly facts: ContainerFacts };
  readonly PrepareContainer: { readonly rootfs: readonly Mount[] };
  readonly CleanContainer: Record<string, never>;
  readonly ReopenLog: Record<string, never>;
  readonly UpdateContainer: Record<string, never>;
}

/** Limits that are to hold, with what the request says of the change itself. */
export interface ContainerUpdate {
  readonly resources: LinuxContainerResources;
  /** Absent: none. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** What NRI plugins want changed that CRI has no words for; absent: nothing. */
  readonly beyond?: NriResources;
}

/** What their intents say; null for nothing. */
export interface ContainerIntents {
  readonly InspectContainer: null;
  readonly PrepareContainer: null;
  readonly CleanContainer: null;
  readonly ReopenLog: null;
  /** All limits that are to hold, those that stay as they are too. */
  readonly UpdateContainer: ContainerUpdate;
}
