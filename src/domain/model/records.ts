/**
 * The vocabulary of the journal: every type of record, with its body. Bodies are what is frozen for ever: a change of
 * meaning takes a new version `v` and an upcaster, never an edit here.
 *
 * There are two sorts. *Inputs* come from outside the core (a call, an outcome, an exit, a timer) and hold everything
 * that is not determined by earlier records: clocks, random ids, host facts. *Events* are decided from the state and
 * one input, in the same turn, and name that input as their cause. So re-deciding the inputs must give the events
 * again, byte for byte (C13).
 */
import type { ContainerConfig, Int64, LinuxContainerResources, PodSandboxConfig } from './cri.ts';
import type { CniConfList } from './cni.ts';
import type { ContainerExited, ContainerLost } from './container-ended.ts';
import type { EffectIntents, EffectKind, EffectResults } from './effects.ts';
import type { ImagePulled } from './image-content.ts';
import type { AuditPolicy, ConfigReload } from './audit-policy.ts';
import type { ClearedStrays, JournalRead, RecordedRead } from './reads.ts';
import type { TaskExit } from './tasks.ts';
import type { SandboxRequested } from './sandbox-requested.ts';
import type { Failure, GrpcCode } from './errors.ts';
import type { LogKeeperEnded, LogKeeperStarted } from './log-keeper.ts';
import type { DaemonFacts } from './daemon-facts.ts';
import type { DamagedContent, JournalDoubt, NodeEvent, NodeNote } from './notes.ts';
import type { NriResources } from './nri.ts';
import type { ContainerAdjusted, NriNote } from './nri-plugins.ts';
import type { AttachRequest, ExecRequest, ExecSyncRequest } from './streams.ts';
import type { RestorePodRequest } from './pod-restore.ts';
import type { Result } from './result.ts';
import type { TurnFailed } from './turn-failed.ts';
import type { UnknownField } from './unknown-fields.ts';

/** Who called, as the kernel says (SO_PEERCRED), with the start time that makes the pid unique. */
export interface Caller {
  readonly pid: number;
  readonly uid: number;
  readonly executable: string;
  /** scribe's own command line, whose executable is Node; by its arguments, which the caller itself chose. Absent: another. */
  readonly program?: 'scribe';
  readonly startTicks: Int64;
}

/** Limits of a pod as a whole, which kubelet keeps itself in the pod's cgroup; what is not given stays. */
export interface PodLimits {
  readonly overhead?: LinuxContainerResources;
  readonly resources?: LinuxContainerResources;
}

/** An NRI plugin ("NN-name") wants a container gone. */
export interface Eviction {
  readonly plugin: string;
  readonly reason: string;
}

/** Calls that change something. Ids in them are whole (prefixes are resolved by the CRI listener) and secrets are tokens. */
export type CallRequest =
  | {
      readonly method: 'RunPodSandbox';
      readonly newId: string;
      readonly config: PodSandboxConfig;
      readonly runtimeHandler: string;
    }
  | { readonly method: 'StopPodSandbox'; readonly podSandboxId: string }
  | { readonly method: 'RemovePodSandbox'; readonly podSandboxId: string }
  | {
      readonly method: 'CreateContainer';
      readonly newId: string;
      readonly podSandboxId: string;
      readonly config: ContainerConfig;
    }
  | { readonly method: 'StartContainer'; readonly containerId: string }
  | {
      readonly method: 'StopContainer';
      readonly containerId: string;
      readonly timeoutSeconds: Int64;
      /** An NRI plugin ("NN-name") wants it gone; absent: a client stops it. */
      readonly evicted?: Eviction;
    }
  | { readonly method: 'RemoveContainer'; readonly containerId: string }
  | ({ readonly method: 'ExecSync' } & ExecSyncRequest)
  /** Allows one session: the reply's address holds a token, which is nowhere in here. */
  | ({ readonly method: 'Exec' } & ExecRequest)
  | ({ readonly method: 'Attach' } & AttachRequest)
  | {
      readonly method: 'PortForward';
      readonly newId: string;
      readonly podSandboxId: string;
      readonly ports: readonly number[];
    }
  /** A session that a client has begun with such a token: received when it begins, completed when it ends. */
  | ({ readonly method: 'ExecSession'; readonly allowedBy: string } & ExecRequest)
  | ({ readonly method: 'AttachSession'; readonly allowedBy: string } & AttachRequest)
  /** One connection to one port; a client makes as many as it likes with one token. */
  | {
      readonly method: 'PortForwardSession';
      readonly newId: string;
      readonly allowedBy: string;
      readonly podSandboxId: string;
      readonly port: number;
    }
  | { readonly method: 'ReopenContainerLog'; readonly containerId: string }
  /** Fields that are not set keep their values. */
  | {
      readonly method: 'UpdateContainerResources';
      readonly containerId: string;
      readonly resources: LinuxContainerResources;
      /** Of the change, for whoever puts it in force: the shim. Absent: none. */
      readonly annotations?: Readonly<Record<string, string>>;
      /** The NRI plugin ("NN-name") that wants it; absent: a client does, and plugins are asked. */
      readonly plugin?: string;
      /** What the plugin wants that CRI has no words for; absent: nothing. */
      readonly beyond?: NriResources;
    }
  | {
      readonly method: 'CheckpointContainer';
      readonly containerId: string;
      readonly location: string;
      readonly timeoutSeconds: Int64;
    }
  | {
      readonly method: 'CheckpointPod';
      readonly podSandboxId: string;
      readonly outputPath: string;
      /** Empty: all that run. */
      readonly containerIds: readonly string[];
    }
  | ({ readonly method: 'RestorePod' } & RestorePodRequest)
  | ({ readonly method: 'UpdatePodSandboxResources'; readonly podSandboxId: string } & PodLimits)
  | {
      readonly method: 'PullImage';
      readonly image: string;
      readonly credentials: string | null;
      /** The runtime handler that it is pulled for; absent where none is named. */
      readonly runtimeHandler?: string;
    }
  | { readonly method: 'LoadImages'; readonly newId: string }
  | { readonly method: 'RemoveImage'; readonly image: string }
  | { readonly method: 'UpdateRuntimeConfig'; readonly podCidr: string }
  | { readonly method: 'SetLogLevel'; readonly level: string }
  | { readonly method: 'AcknowledgeJournal'; readonly reason: string }
  | ({ readonly method: 'ClearStrays' } & ClearedStrays)
  | ({ readonly method: 'ReloadConfig' } & ConfigReload)
  | ({ readonly method: 'ReadJournal' } & JournalRead)
  | ({ readonly method: 'Read' } & RecordedRead)
  /** A request that was refused before it could be written down as a call: what was wrong with it. */
  | { readonly method: 'Refused'; readonly rpc: string; readonly failure: Failure }
  /** An RPC that scribe does not offer yet. */
  | { readonly method: 'Unimplemented'; readonly rpc: string };

export type CallMethod = CallRequest['method'];
export type RequestOf<M extends CallMethod> = Extract<CallRequest, { method: M }>;

/** What goes back to the caller and into the record; output of an exec goes beside it, never in here. */
export interface CallResponse {
  readonly id?: string;
  /** Of RestorePod: ids of its containers by their names. */
  readonly containerIds?: Readonly<Record<string, string>>;
  readonly imageRefs?: readonly string[];
  readonly exitCode?: number;
  readonly stdinBytes?: number;
  readonly stdoutBytes?: number;
  readonly stderrBytes?: number;
  /** Of a forwarded port. */
  readonly toPodBytes?: number;
  readonly fromPodBytes?: number;
}

export type CallOutcome = Result<CallResponse>;

/** What is to be done, in an `effects.requested` record on the stream of the object it is done to. */
export type Intent = {
  readonly [K in EffectKind]: EffectIntents[K] extends null
    ? { readonly kind: K }
    : { readonly kind: K } & EffectIntents[K];
}[EffectKind];

/** An effect's outcome. `effect` is the id of the request: <seq of effects.requested>.<index>. */
export type EffectEnded = {
  readonly [K in EffectKind]: {
    readonly effect: string;
    readonly kind: K;
    /** Absent when it failed. */
    readonly result?: EffectResults[K];
    readonly failure?: Failure;
    /** Digest of the request as it was performed; absent: it was not, or nobody took it then. */
    readonly request?: string;
  };
}[EffectKind];

export type Input =
  | {
      readonly type: 'daemon.started';
      readonly body: {
        readonly facts: DaemonFacts;
        /** The kernel is another boot than the last record's: every process, mount and namespace is gone. */
        readonly rebooted: boolean;
        /**
         * Ids of containers and sandboxes whose task's pid and start time name no live process, and of sandboxes without
         * a task whose namespaces are not pinned any more.
         */
        readonly deadTasks: readonly string[];
        /** What the crash file of the last life said, if it left one. */
        readonly crash: string | null;
        /** What is recorded of calls from now on, where the configuration says something of it. */
        readonly audit?: AuditPolicy;
        /** Streams of objects that recovery passes over, since deciding about them threw; absent: none. */
        readonly leftAlone?: readonly { readonly stream: string; readonly error: string }[];
      };
    }
  | { readonly type: 'daemon.stopped'; readonly body: { readonly reason: string } }
  | {
      readonly type: 'call.received';
      readonly body: {
        readonly request: CallRequest;
        readonly caller: Caller | null;
        readonly deadlineNs: Int64 | null;
        /** The caller's span, as the W3C's traceparent header has it; absent when it told none. */
        readonly traceParent?: string;
        /** What the request had more than the contract knows; absent when it was nothing. */
        readonly unknownFields?: readonly UnknownField[];
      };
    }
  | { readonly type: 'call.detached'; readonly body: { readonly received: number } }
  | { readonly type: 'effect.ended'; readonly body: EffectEnded }
  | { readonly type: 'task.exited'; readonly body: { readonly exit: TaskExit } }
  | { readonly type: 'task.oomed'; readonly body: Record<string, never> }
  | { readonly type: 'shim.lost'; readonly body: Record<string, never> }
  /** Of an image, found by the check of content. Nothing follows: what containers run from is not taken from under them. */
  | { readonly type: 'content.damaged'; readonly body: DamagedContent }
  | { readonly type: 'journal.doubted'; readonly body: JournalDoubt }
  | NodeNote
  | NriNote
  | { readonly type: 'logkeeper.started'; readonly body: LogKeeperStarted }
  | { readonly type: 'logkeeper.ended'; readonly body: LogKeeperEnded }
  | {
      readonly type: 'network.configured';
      readonly body: {
        readonly confList: CniConfList | null;
        readonly problem: string | null;
        /** The runtime handler whose pods it is for; absent: those of handlers that have none of their own. */
        readonly handler?: string;
      };
    }
  /** Another input's turn threw. */
  | { readonly type: 'turn.failed'; readonly body: TurnFailed };

/** A pod is undone: it could not be made, a plugin refused that it runs, or nobody asked for it once it was made (C5). */
export type PodUndoCause = 'notMade' | 'vetoed' | 'unclaimed';

export type Event =
  | { readonly type: 'effects.requested'; readonly body: { readonly effects: readonly Intent[] } }
  | { readonly type: 'sandbox.requested'; readonly body: SandboxRequested }
  /** Its containers are asked for: it is READY, and they are CREATED, once all of them are made. */
  | { readonly type: 'sandbox.restoring'; readonly body: Record<string, never> }
  | { readonly type: 'sandbox.ready'; readonly body: { readonly claimed: boolean } }
  | { readonly type: 'sandbox.claimed'; readonly body: Record<string, never> }
  /** Creation is given up and undone, for this reason. */
  | {
      readonly type: 'sandbox.failed';
      readonly body: {
        readonly failure: Failure;
        /** Absent in journals of before rules 5. */
        readonly cause?: PodUndoCause;
      };
    }
  /** What held it has ended by itself: its pause task or the shim of that. */
  | { readonly type: 'sandbox.lost'; readonly body: { readonly message: string } }
  /** Its limits are these from now on. */
  | { readonly type: 'sandbox.updated'; readonly body: PodLimits }
  | { readonly type: 'sandbox.stopping'; readonly body: Record<string, never> }
  | { readonly type: 'sandbox.stopped'; readonly body: Record<string, never> }
  | { readonly type: 'sandbox.removing'; readonly body: Record<string, never> }
  | { readonly type: 'sandbox.removed'; readonly body: Record<string, never> }
  /** What an undo still owes is tried once more (sandbox or container). */
  | { readonly type: 'undo.retried'; readonly body: Record<string, never> }
  | {
      readonly type: 'container.requested';
      readonly body: {
        readonly name: string;
        readonly podSandboxId: string;
        readonly config: ContainerConfig;
        readonly imageId: string;
        /** The images that its config mounts as volumes; absent: none. */
        readonly mountedImages?: readonly { readonly image: string; readonly imageId: string }[];
        /** Path of the archive whose processes its start restores; absent: it starts anew. */
        readonly checkpointArchive?: string;
      };
    }
  /** What NRI plugins changed in its spec, put together from their answers. */
  | {
      readonly type: 'container.adjusted';
      readonly body: ContainerAdjusted & {
        /** All its limits, where some of CRI's words are among what was changed; absent: they stay. */
        readonly resources?: LinuxContainerResources;
      };
    }
  | { readonly type: 'container.created'; readonly body: { readonly claimed: boolean } }
  | { readonly type: 'container.claimed'; readonly body: Record<string, never> }
  | { readonly type: 'container.failed'; readonly body: { readonly failure: Failure } }
  | { readonly type: 'container.starting'; readonly body: Record<string, never> }
  | { readonly type: 'container.started'; readonly body: { readonly pid: number; readonly startTicks: Int64 } }
  | {
      readonly type: 'container.stopping';
      readonly body: {
        readonly signal: number;
        readonly killAtNs: Int64 | null;
        /** Absent: no NRI plugin wants it gone. */
        readonly evicted?: Eviction;
      };
    }
  | { readonly type: 'container.exited'; readonly body: ContainerExited }
  /** Its limits are these from now on: in force, or in the spec of a container that does not run. */
  | {
      readonly type: 'container.updated';
      readonly body: {
        readonly resources: LinuxContainerResources;
        /** What NRI plugins changed with it that CRI has no words for; absent: nothing. */
        readonly beyond?: NriResources;
      };
    }
  /** Its shim was lost: nobody can say its exit code, and what may still run of it is being killed. */
  | { readonly type: 'container.lost'; readonly body: ContainerLost }
  | { readonly type: 'container.removing'; readonly body: Record<string, never> }
  | { readonly type: 'container.removed'; readonly body: Record<string, never> }
  | { readonly type: 'image.pulled'; readonly body: ImagePulled }
  | { readonly type: 'image.untagged'; readonly body: { readonly repoTags: readonly string[] } }
  | { readonly type: 'image.removing'; readonly body: Record<string, never> }
  /** Its content is gone from the disk. */
  | { readonly type: 'image.removed'; readonly body: Record<string, never> }
  | NodeEvent
  /** This call waits for the same thing as an earlier one (C5). */
  | { readonly type: 'call.joined'; readonly body: { readonly target: string } }
  | {
      readonly type: 'call.completed';
      readonly body: {
        readonly method: CallMethod;
        readonly code: GrpcCode;
        readonly failure?: Failure;
        readonly response?: CallResponse;
        readonly durationNs: Int64;
        readonly detached?: boolean;
      };
    };

export type DomainRecord = Input | Event;
export type RecordType = DomainRecord['type'];
export type InputType = Input['type'];
export type BodyOf<T extends RecordType> = Extract<DomainRecord, { type: T }>['body'];

/** The version of each type's body that is written today. Older ones are upcast when read (upcast.ts). */
export const RECORD_VERSION = 1;

/** A record as the domain sees it: the journal's columns with the body parsed. */
export type Sequenced<R extends DomainRecord = DomainRecord> = R & {
  readonly seq: number;
  readonly atNs: bigint;
  readonly monoNs: bigint;
  readonly stream: string;
  readonly cause: number | null;
  readonly call: number | null;
};

/** Names one effect of an effects.requested for ever. */
export const effectId = (seq: number, index: number): string => `${seq}.${index}`;

/** The RPC as clients call it. */
export const rpcOf = (request: CallRequest): string => ('rpc' in request ? request.rpc : request.method);

export const NODE_STREAM = 'node';
export const sandboxStream = (podSandboxId: string): string => `sandbox/${podSandboxId}`;
export const containerStream = (containerId: string): string => `container/${containerId}`;
export const imageStream = (imageId: string): string => `image/${imageId}`;
export const callStream = (callId: string): string => `call/${callId}`;

const OBJECT_KINDS = ['sandbox', 'container', 'image', 'call'] as const;
type ObjectKind = (typeof OBJECT_KINDS)[number];
export type SubjectKind = ObjectKind | typeof NODE_STREAM;

/** What a stream tells of. The id of the node is empty. */
export interface Subject {
  readonly kind: SubjectKind;
  readonly id: string;
}

/** A stream that is named otherwise would be the node's. */
export function subjectOf(stream: string): Subject {
  const slash = stream.indexOf('/');
  const kind = OBJECT_KINDS.find((known) => stream.slice(0, Math.max(0, slash)) === known);
  return kind === undefined ? NODE : { kind, id: stream.slice(slash + 1) };
}

const NODE: Subject = { kind: NODE_STREAM, id: '' };
