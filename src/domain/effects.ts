/**
 * Effects: all that scribe ever does to the world outside its journal. A process manager requests them, the engine
 * releases a request once its intent is durable (C2), an adapter performs it and its outcome comes back as a record.
 * Every effect is "make it so": performing it again after a crash half-way gives the same result, and what is
 * already there or already gone counts as success. Requests are complete: an adapter needs no other state.
 * Must not hold secrets: tokens stand for them, and the adapter fills them in (C12).
 */
import type { PodNetwork } from './cni.ts';
import type { ContainerFacts, ContainerQuestions } from './container/facts.ts';
import type { Int64, PodSandboxConfig } from './cri.ts';
import type { OciResources, OciSpec } from './oci/types.ts';
import type { RuntimeHandler } from './runtime-handler.ts';
import type { MappedMount, PodUserNamespace } from './oci/user-namespace.ts';
import type { NamespacePins, SandboxPlatform } from './pod-sandbox/holder.ts';

/** A mount as the shim API passes it (containerd.types.Mount). */
export interface Mount {
  readonly type: string;
  readonly source: string;
  readonly target?: string;
  readonly options: readonly string[];
}

/** An OCI bundle to be written: <path>/config.json (0600), <path>/rootfs, and the shim's log FIFO. */
export interface Bundle {
  readonly id: string;
  readonly path: string;
  readonly spec: OciSpec;
}

/** A live shim: enough to reconnect to it, and to tell it from another process with the same pid. */
export interface ShimAddress {
  /** unix:///… as the shim printed it. */
  readonly address: string;
  /** Version of the task service: 2 or 3. */
  readonly taskApi: 2 | 3;
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: with the boot id and pid it names a process for ever. */
  readonly startTicks: Int64;
}

export interface LaunchedTask {
  readonly pid: number;
  readonly startTicks: Int64;
}

export interface TaskExit {
  readonly pid: number;
  readonly exitStatus: number;
  readonly exitedAtNs: Int64;
  /** The cgroup's count of processes killed for lack of memory, read before the task is deleted. */
  readonly oomKills: number;
}

/** The part of an OCI image config that containers are made from. */
export interface ImageConfig {
  readonly user?: string;
  readonly env?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly cmd?: readonly string[];
  readonly workingDir?: string;
  readonly volumes?: readonly string[];
  readonly stopSignal?: string;
}

export interface ImageLayer {
  /** Digest of the compressed blob, sha256:… */
  readonly digest: string;
  readonly diffId: string;
  /** Names the unpacked snapshot: SHA-256 over the chain of diffIds (OCI image-spec, "ChainID"). */
  readonly chainId: string;
  readonly sizeBytes: number;
}

/** What is known of an image once it is whole on this node. */
export interface ImageContent {
  /** The image's id: the digest of its config blob, sha256:… */
  readonly id: string;
  readonly manifestDigest: string;
  /** familiar.host/repo:tag forms this content was asked for by; empty when asked for by digest only. */
  readonly repoTags: readonly string[];
  /** host/repo@sha256:… */
  readonly repoDigests: readonly string[];
  /** Compressed size of config and layers, in bytes. */
  readonly sizeBytes: number;
  readonly config: ImageConfig;
  readonly layers: readonly ImageLayer[];
  /** Every blob this image needs on disk: manifest (and index), config, layers. */
  readonly blobs: readonly string[];
}

/** Where a container's output goes: absolute path of the CRI log file, null to discard it. */
export interface ContainerLog {
  readonly path: string | null;
}

/** A task as its shim sees it, asked after every reconnect (C3). */
export interface ObservedTask {
  readonly containerId: string;
  readonly status: 'created' | 'running' | 'stopped' | 'absent';
  readonly pid: number;
  /** Start time of that pid; '0' when there is no process. */
  readonly startTicks?: Int64;
  readonly exit?: TaskExit;
}

export type Effect =
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
  /** Begins once a PinNamespaces of the same pod that is under way has succeeded. */
  | { readonly kind: 'AttachNetwork'; readonly podSandboxId: string; readonly network: PodNetwork }
  | {
      readonly kind: 'DetachNetwork';
      readonly podSandboxId: string;
      readonly network: PodNetwork;
      readonly result: unknown;
    }
  | {
      readonly kind: 'StartShim';
      readonly podSandboxId: string;
      readonly handler: RuntimeHandler;
      readonly bundlePath: string;
    }
  /** Ends the pod's shim: Shutdown over ttrpc, and SIGKILL of exactly that process if it does not go. */
  | {
      readonly kind: 'StopShim';
      readonly podSandboxId: string;
      readonly handler: RuntimeHandler;
      readonly bundlePath: string;
      readonly shim: ShimAddress | null;
      /** It is its sandbox service that is told to shut down. */
      readonly hasSandbox?: boolean;
    }
  /** Connects again to a shim from before a restart and asks it for every task (Wait, where one is stopped). */
  | {
      readonly kind: 'ReconnectShim';
      readonly podSandboxId: string;
      readonly shim: ShimAddress;
      readonly bundlePath: string;
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
      /** The pod's own users and a process that has them: the rootfs is mounted in the bundle for them. */
      readonly users?: PodUserNamespace & { readonly holder: LaunchedTask };
    }
  | { readonly kind: 'CleanContainer'; readonly containerId: string; readonly paths: readonly string[] }
  /** Opens the log, then Create, Wait and Start of a task. */
  | {
      readonly kind: 'StartTask';
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
      /** Mounted while the task is created, which keeps them for itself. */
      readonly mapped?: { readonly holder: LaunchedTask; readonly mounts: readonly MappedMount[] };
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
    }
  | {
      readonly kind: 'RunExec';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly execId: string;
      readonly bundlePath: string;
      readonly args: readonly string[];
      readonly timeoutMs: number | null;
    }
  /** Kills and deletes an exec that a crash left in doubt. */
  | { readonly kind: 'EndExec'; readonly podSandboxId: string; readonly containerId: string; readonly execId: string }
  /** Runs a command between the streams of the session `execId`, to its end; ends it when its client goes. */
  | {
      readonly kind: 'StreamExec';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly execId: string;
      readonly bundlePath: string;
      readonly args: readonly string[];
      readonly tty: boolean;
    }
  /** Lets a session hear a container's output and write to its stdin, until the container's output or the session ends. */
  | {
      readonly kind: 'StreamAttach';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly sessionId: string;
      readonly terminal: boolean;
      readonly stdin: boolean;
      /** It is closed when this session has done with it. */
      readonly closeStdin: boolean;
    }
  /** Connects a session to a port of the pod's loopback, until both directions or the session have ended. */
  | {
      readonly kind: 'StreamPort';
      readonly podSandboxId: string;
      readonly sessionId: string;
      readonly port: number;
      /** null with the host's network. */
      readonly netnsPath: string | null;
    }
  | { readonly kind: 'ReopenLog'; readonly containerId: string; readonly log: ContainerLog }
  /** Writes a task's state into an archive at `location` (whole or not at all); the task runs on. */
  | {
      readonly kind: 'CheckpointTask';
      readonly podSandboxId: string;
      readonly containerId: string;
      readonly bundlePath: string;
      /** Where its parts are put together; gone afterwards. */
      readonly workDir: string;
      readonly rootfs: readonly Mount[];
      readonly location: string;
      /** What the archive says of the container, beside the spec. */
      readonly description: Readonly<Record<string, string>>;
      readonly timeoutMs: number | null;
    }
  /** Has a task run on that a checkpoint left frozen, and removes what there is of its archive. */
  | {
      readonly kind: 'EndCheckpoint';
      readonly containerId: string;
      readonly bundlePath: string;
      readonly workDir: string;
      readonly location: string;
    }
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
    }
  | {
      readonly kind: 'PullImage';
      /** Normalised reference: registry.example/repo:tag, …@sha256:… or both. */
      readonly reference: string;
      /** Token of the credentials, null for none. */
      readonly credentials: string | null;
    }
  /** Reads an OCI or docker archive that the caller streams in; `upload` names the stream. */
  | { readonly kind: 'LoadImages'; readonly upload: string }
  /** Deletes blobs and snapshots that no image and no container needs any more. */
  | { readonly kind: 'DeleteImageContent'; readonly blobs: readonly string[]; readonly chainIds: readonly string[] }
  /** Succeeds at `dueAtNs` of the wall clock, at once when that is past. */
  | { readonly kind: 'WaitUntil'; readonly dueAtNs: Int64; readonly purpose: string };

export type EffectKind = Effect['kind'];
export type EffectOf<K extends EffectKind> = Extract<Effect, { kind: K }>;

/** How much went through a session, never what. */
export interface StreamedBytes {
  readonly stdinBytes: number;
  readonly stdoutBytes: number;
  readonly stderrBytes: number;
}

/** What each effect's success says; recorded whole, so it stays small and holds no secret. */
export interface EffectResults {
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
  readonly StartShim: { readonly shim: ShimAddress };
  readonly StopShim: Record<string, never>;
  /** The pid is 0 where the sandbox is no process of this node. platform: absent where the shim does not say. */
  readonly StartSandbox: { readonly task: LaunchedTask; readonly platform?: SandboxPlatform };
  readonly StopSandbox: Record<string, never>;
  /** gone: the shim does not answer and its process has ended. */
  readonly ReconnectShim: { readonly gone: boolean; readonly tasks: readonly ObservedTask[] };
  readonly InspectContainer: { readonly facts: ContainerFacts };
  readonly PrepareContainer: { readonly rootfs: readonly Mount[] };
  readonly CleanContainer: Record<string, never>;
  readonly StartTask: { readonly task: LaunchedTask };
  /** alreadyGone: there was no process left to signal. */
  readonly KillTask: { readonly alreadyGone: boolean };
  readonly DeleteTask: Record<string, never>;
  /** The output itself goes back to the caller beside the journal, never into it. */
  readonly RunExec: {
    readonly exitStatus: number;
    readonly timedOut: boolean;
    readonly stdoutBytes: number;
    readonly stderrBytes: number;
  };
  readonly EndExec: Record<string, never>;
  readonly StreamExec: { readonly exitStatus: number } & StreamedBytes;
  readonly StreamAttach: StreamedBytes;
  readonly StreamPort: { readonly toPodBytes: number; readonly fromPodBytes: number };
  readonly ReopenLog: Record<string, never>;
  readonly UpdateContainer: Record<string, never>;
  readonly CheckpointTask: Record<string, never>;
  readonly EndCheckpoint: Record<string, never>;
  readonly PullImage: { readonly image: ImageContent };
  readonly LoadImages: { readonly images: readonly ImageContent[] };
  readonly DeleteImageContent: { readonly freedBytes: number };
  readonly WaitUntil: Record<string, never>;
}
