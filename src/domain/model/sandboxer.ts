/** The words for who holds a pod's namespaces while its containers come and go, and what they say of it. Types only. */

/**
 * Who holds a pod's namespaces while its containers come and go: a pause task; nobody, when bind mounts pin them; or the
 * pod's shim by its own sandbox service (containerd.runtime.sandbox.v1).
 */
export type Sandboxer = 'pause' | 'none' | 'shim';

/** Files that pin a pod's namespaces by bind mounts; null for one that the pod shares with the node. */
export interface NamespacePins {
  readonly network: string | null;
  readonly ipc: string | null;
  readonly uts: string | null;
}

/** What a shim's sandbox service says its containers run on. */
export interface SandboxPlatform {
  readonly os: string;
  readonly architecture: string;
  readonly variant?: string;
}
