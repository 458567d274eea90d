/** The body of sandbox.requested: what is chosen for a pod before anything of it is made. Types only, frozen as records are. */
import type { PodNetwork } from './cni.ts';
import type { PodSandboxConfig } from './cri.ts';
import type { SelinuxLabels } from './selinux.ts';
import type { RuntimeHandler } from './runtime-handler.ts';
import type { Sandboxer } from './sandboxer.ts';
import type { PodRestore } from './pod-restore.ts';

export interface SandboxRequested {
  readonly name: string;
  readonly config: PodSandboxConfig;
  readonly runtimeHandler: string;
  readonly handler: RuntimeHandler;
  readonly network: PodNetwork | null;
  /** The image its pause task runs; null for the program that scribe carries. */
  readonly imageId: string | null;
  /** Absent: pause, as every pod had it once. */
  readonly sandboxer?: Sandboxer;
  /** The checkpoint that it is restored from; absent: none. */
  readonly restore?: PodRestore;
  /** Absent: nothing of it is labelled. */
  readonly selinux?: SelinuxLabels;
}
