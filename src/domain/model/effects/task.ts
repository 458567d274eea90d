/**
 * Effects on shims and on what they run, for pods and for containers alike, and what their success says. Types only.
 * Commands in a container that runs are those of session.ts.
 */
import type { PodSandboxConfig } from '../cri.ts';
import type { MappedMount, PodUserNamespace } from '../user-namespace.ts';
import type { SandboxPlatform } from '../sandboxer.ts';
import type { RuntimeHandler } from '../runtime-handler.ts';
import type { ContainerLog, LaunchedTask, Mount, ObservedTask, ShimOrigin, ShimAddress } from '../tasks.ts';

/** Volumes seen through the pod's own users. */
export interface MappedMounts {
  readonly holder: LaunchedTask;
  readonly mounts: readonly MappedMount[];
}

export type TaskEffect =
  /** Has a shim run for the pod: its own, or the one that it shares, which may run already. */
  | {
      readonly kind: 'StartShim';
      readonly podSandboxId: string;
      readonly handler: RuntimeHandler;
      readonly bundlePath: string;
      /** Absent: the pod has one of its own, which is started in its bundle. */
      readonly shared?: ShimOrigin;
    }
  /**
   * Ends the pod's shim: Shutdown over ttrpc, and SIGKILL of exactly that process if it does not go. One that other pods
   * have too is only let go of.
   */
  | {
      readonly kind: 'StopShim';
      readonly podSandboxId: string;
      readonly handler: RuntimeHandler;
      readonly bundlePath: string;
      readonly shim: ShimAddress | null;
      readonly shared?: ShimOrigin & { readonly isInUse: boolean };
      /** It is its sandbox service that is told to shut down. */
      readonly hasSandbox?: boolean;
    }
  /** Connects again to a shim from before a restart and asks it for every task (Wait, where one is stopped). */
  | {
      readonly kind: 'ReconnectShim';
      readonly podSandboxId: string;
      readonly shim: ShimAddress;
      readonly bundlePath: string;
      readonly shared?: ShimOrigin;
      readonly containerIds: readonly string[];
      /** Process of the sandbox that the shim's own service holds, which is asked for too; absent without one. */
      readonly sandboxPid?: number;
    }
  /** Creates and starts the pod by its shim's sandbox service; its end is observed as a task's exit is. */
  | {
      readonly kind: 'StartSandbox';
      readonly podSandboxId: string;
      readonly shim: ShimAddress;
      readonly bundlePath: string;
      readonly rootfs: readonly Mount[];
      readonly netnsPath: string | null;
      readonly config: PodSandboxConfig;
    }
  /** Stops it, and has its exit durable; where its shim has gone, StopShim takes away what is left. */
  | { readonly kind: 'StopSandbox'; readonly podSandboxId: string; readonly timeoutSeconds: number }
  /** Opens the log, then Create and Wait of a task: its process is there, and waits to be started. */
  | {
      readonly kind: 'CreateTask';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly handler: RuntimeHandler;
      readonly bundlePath: string;
      readonly rootfs: readonly Mount[];
      readonly terminal: boolean;
      readonly stdin: boolean;
      readonly stdinOnce: boolean;
      readonly log: ContainerLog | null;
      /** The pod's own users: its root owns the task's output. */
      readonly users?: PodUserNamespace;
      /** Process whose PID namespace is joined, of another container; null when that was never there or is gone. */
      readonly target?: LaunchedTask | null;
      /** Mounted while the task gets its process, which keeps them for itself. */
      readonly mapped?: MappedMounts;
      /** Where a checkpoint is unpacked whose processes go on; absent: it starts anew. */
      readonly checkpointDir?: string;
    }
  /** Starts a task that was created. */
  | {
      readonly kind: 'StartTask';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly handler: RuntimeHandler;
      readonly bundlePath: string;
      /** It gets its process with the start only, and the checkpoint is not kept any longer; absent: it starts anew. */
      readonly restored?: { readonly checkpointDir: string; readonly mapped?: MappedMounts };
    }
  | {
      readonly kind: 'KillTask';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly signal: number;
      readonly all: boolean;
    }
  /** Deletes the task, killing what still runs in it; over ttrpc, or by the shim binary when the shim is gone. */
  | {
      readonly kind: 'DeleteTask';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly handler: RuntimeHandler;
      readonly bundlePath: string;
    };

export interface TaskResults {
  readonly StartShim: { readonly shim: ShimAddress };
  readonly StopShim: Record<string, never>;
  /** gone: the shim does not answer and its process has ended. */
  readonly ReconnectShim: { readonly gone: boolean; readonly tasks: readonly ObservedTask[] };
  /** The pid is 0 where the sandbox is no process of this node. platform: absent where the shim does not say. */
  readonly StartSandbox: { readonly task: LaunchedTask; readonly platform?: SandboxPlatform };
  readonly StopSandbox: Record<string, never>;
  /** The pid is 0 of what is restored. */
  readonly CreateTask: { readonly task: LaunchedTask };
  readonly StartTask: { readonly task: LaunchedTask };
  /** alreadyGone: there was no process left to signal. */
  readonly KillTask: { readonly alreadyGone: boolean };
  readonly DeleteTask: Record<string, never>;
}

/** What their intents say; null for nothing. */
export interface TaskIntents {
  /** sharedShimId: the shim that the pod shares; absent: one of its own. */
  readonly StartShim: { readonly sharedShimId?: string };
  readonly StopShim: null;
  readonly ReconnectShim: null;
  readonly StartSandbox: null;
  readonly StopSandbox: null;
  readonly CreateTask: null;
  readonly StartTask: null;
  readonly KillTask: { readonly signal: number; readonly all: boolean };
  readonly DeleteTask: null;
}
