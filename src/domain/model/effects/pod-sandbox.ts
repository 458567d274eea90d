/**
 * Effects on what a pod has on its node beside processes (files, namespaces, the network), and what their success says.
 * Types only. Its shim and its pause task are those of task.ts.
 */
import type { PodNetwork } from '../cni.ts';
import type { PodUserNamespace } from '../user-namespace.ts';
import type { NamespacePins } from '../sandboxer.ts';
import type { Bundle, LaunchedTask, Mount } from '../tasks.ts';

/** What a pod is made of, by effects of this file and of task.ts: src/domain/pod-sandbox/steps.ts has which. */
export type SandboxStep = 'files' | 'netns' | 'namespaces' | 'network' | 'shim' | 'task';

export type PodSandboxEffect =
  /** Makes <dir> with hostname, hosts, resolv.conf and shm (a tmpfs mount), and the pause bundle when there is one. */
  | {
      readonly kind: 'PreparePodSandbox';
      readonly podSandboxId: string;
      readonly dir: string;
      /** File name to content; null content copies the host's file of that name from /etc. */
      readonly files: Readonly<Record<string, string | null>>;
      readonly shm: { readonly path: string; readonly sizeBytes: number } | null;
      readonly bundle: Bundle | null;
      /** A profile of the node that the pause task is to run under: read, and added to the bundle's spec. */
      readonly seccompProfilePath: string | null;
      /** Layers of the configured sandbox image; null with the pause program that scribe carries. */
      readonly chainIds: readonly string[] | null;
      /** What its files are labelled with (SELinux); absent: nothing. */
      readonly mountLabel?: string;
      /** Whose files and shm are to be; absent: the node's root. */
      readonly users?: PodUserNamespace;
    }
  /** Unmounts and removes all that PreparePodSandbox may have made; nothing outside `paths` is touched. */
  | {
      readonly kind: 'CleanPodSandbox';
      readonly podSandboxId: string;
      readonly paths: readonly string[];
      /** It may have a writable layer on top of the sandbox image. */
      readonly hasSnapshot: boolean;
    }
  /** Pins a new network namespace, with loopback up; or that of `holder`, who has one of its own. */
  | {
      readonly kind: 'CreateNetns';
      readonly podSandboxId: string;
      readonly path: string;
      readonly holder?: LaunchedTask;
    }
  | { readonly kind: 'RemoveNetns'; readonly podSandboxId: string; readonly path: string }
  /** Makes the pod's namespaces with loopback up, its hostname and kernel parameters set, and pins each at its path. */
  | {
      readonly kind: 'PinNamespaces';
      readonly podSandboxId: string;
      readonly pins: NamespacePins;
      /** null leaves the node's. */
      readonly hostname: string | null;
      /** Kernel parameters of these namespaces, dots between the parts of a name. */
      readonly sysctls: Readonly<Record<string, string>>;
    }
  | { readonly kind: 'UnpinNamespaces'; readonly podSandboxId: string; readonly pins: NamespacePins }
  | { readonly kind: 'AttachNetwork'; readonly podSandboxId: string; readonly network: PodNetwork }
  | {
      readonly kind: 'DetachNetwork';
      readonly podSandboxId: string;
      readonly network: PodNetwork;
      readonly result: unknown;
    };

export interface PodSandboxResults {
  /** rootfs: how the sandbox image is mounted; empty for the carried pause program. */
  readonly PreparePodSandbox: { readonly rootfs: readonly Mount[] };
  readonly CleanPodSandbox: Record<string, never>;
  readonly CreateNetns: Record<string, never>;
  readonly RemoveNetns: Record<string, never>;
  readonly PinNamespaces: Record<string, never>;
  readonly UnpinNamespaces: Record<string, never>;
  /** ips: primary first, without prefix length. result: the plugins' final CNI result, as DEL wants it back. */
  readonly AttachNetwork: { readonly ips: readonly string[]; readonly result: unknown };
  readonly DetachNetwork: Record<string, never>;
}

/** What their intents say; null for nothing. */
export interface PodSandboxIntents {
  readonly PreparePodSandbox: null;
  readonly CleanPodSandbox: null;
  readonly CreateNetns: null;
  readonly RemoveNetns: null;
  readonly PinNamespaces: null;
  readonly UnpinNamespaces: null;
  readonly AttachNetwork: null;
  readonly DetachNetwork: null;
}
