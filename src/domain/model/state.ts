/**
 * The write state: all that decisions are made from, folded from the journal by evolve.ts and by nothing else.
 * The maps are changed in place by evolve; the objects in them are replaced, never changed, so that whoever holds
 * one holds a moment of it. Everything in here is JSON, so that a snapshot is the state itself.
 */
import type { ContainerConfig, Int64, LinuxContainerResources, PodSandboxConfig } from './cri.ts';
import type { ConfiguredNetwork, PodNetwork } from './cni.ts';
import type { SandboxStep } from './effects/pod-sandbox.ts';
import type { ContainerFacts } from './container-facts.ts';
import type { ImageConfig, ImageContent } from './image-content.ts';
import type { LaunchedTask, Mount, ShimAddress, TaskExit } from './tasks.ts';
import type { RuntimeHandler } from './runtime-handler.ts';
import type { Sandboxer, SandboxPlatform } from './sandboxer.ts';
import type { Failure } from './errors.ts';
import type { DaemonFacts } from './daemon-facts.ts';
import type { SelinuxLabels } from './selinux.ts';
import type { JournalDoubt } from './notes.ts';
import type { PodRestore } from './pod-restore.ts';
import type { ExitReason } from './container-ended.ts';
import type { CallRequest, Eviction, Intent, PodLimits, PodUndoCause } from './records.ts';
import type { PodCheckpoint } from './effects/checkpoint.ts';
import type { ContainerUpdate } from './effects/container.ts';
import type { ContainerNri, HooksTold, NriPlugin } from './nri-plugins.ts';

/**
 * One acquired thing and its undoing.
 *
 *   none ──> doing ──> done ──┐
 *              └────> failed ─┴──> undoing ──> undone
 *                       ^             └────> owed ──┐ (undo.retried)
 *                       └───────────────────────────┘
 *
 * Undo derives from intents: whatever is past `none` is undone, whether or not it ever succeeded (C6).
 */
export type StepState = 'none' | 'doing' | 'done' | 'failed' | 'undoing' | 'undone' | 'owed';

/**
 * unknown: not asked since the daemon started, or the turn of its answer threw. mute: its process lives but it did not
 * answer.
 */
export type ShimContact = 'none' | 'connected' | 'unknown' | 'mute' | 'gone';

/** After so many silences in a row nobody waits for a mute shim's word any more. */
export const SILENCES_MAX = 3;

/** sent: a signal is on its way. futile: there was nothing to signal, or it failed, and no exit came. */
export type KillState = 'none' | 'sent' | 'done' | 'futile';

/**
 *   run ──(failure)──> undo ──> gone
 *    └──> stop ──> (stopped) ──> remove ──> gone
 */
export type SandboxGoal = 'run' | 'undo' | 'stop' | 'remove';

export interface PodSandbox {
  readonly id: string;
  /** Order of creation: the seq of sandbox.requested. */
  readonly seq: number;
  readonly name: string;
  readonly config: PodSandboxConfig;
  /** Its limits since they were changed; before, they are those of `config`, which stays as it was asked for (C5). */
  readonly limits?: PodLimits;
  readonly runtimeHandler: string;
  readonly handler: RuntimeHandler;
  readonly sandboxer: Sandboxer;
  /** Absent: nothing of it is labelled. */
  readonly selinux?: SelinuxLabels;
  /** null with the host's network. */
  readonly network: PodNetwork | null;
  /** The configured sandbox image; null with the pause program that scribe carries. */
  readonly image: { readonly id: string; readonly config: ImageConfig; readonly chainIds: readonly string[] } | null;
  readonly rootfs: readonly Mount[];
  readonly createdAtNs: Int64;
  readonly goal: SandboxGoal;
  readonly phase: 'creating' | 'ready' | 'notReady';
  readonly stopped: boolean;
  /** Absent: none. A step that is new here changes nothing about pods that were made without it. */
  readonly steps: Readonly<Partial<Record<SandboxStep, Exclude<StepState, 'none'>>>>;
  readonly ips: readonly string[];
  readonly networkResult: unknown;
  readonly shim: ShimAddress | null;
  /** The shim that it has together with other pods, by what that is started under; absent: it has one of its own. */
  readonly sharedShimId?: string;
  readonly shimContact: ShimContact;
  /** How often in a row it did not answer. */
  readonly shimSilences: number;
  /** The pause task, or the sandbox that the shim's own service holds, which may be no process of this node (pid 0). */
  readonly task: LaunchedTask | null;
  readonly taskExit: TaskExit | null;
  /** As the shim's sandbox service told it. */
  readonly platform?: SandboxPlatform;
  /** How far NRI plugins were asked about it; absent: they were not. */
  readonly nri?: { readonly hooks: HooksTold };
  /** Being written, or was when the daemon ended: then that is still to be cleared up (C19). */
  readonly checkpoint?: PodCheckpoint;
  /** The checkpoint that it is restored from; absent: none. */
  readonly restore?: PodRestore & { readonly begun: boolean };
  readonly kill: KillState;
  /** Somebody was told the id, or asked for it again. */
  readonly claimed: boolean;
  readonly failure: Failure | null;
  /** The daemon ended while it was being made. Absent: it did not, or that was before rules 9. */
  readonly isCutOff?: true;
  /** Why it is undone; absent: it is not, or an older daemon did not say. */
  readonly cause?: PodUndoCause;
  /** The newest failure of an undo, and how many there were. */
  readonly owedFailure: Failure | null;
  readonly undoFailures: number;
}

/** undo: its creation failed, or nobody asked for it. */
export type ContainerGoal = 'run' | 'remove' | 'undo';

export interface ContainerExit {
  readonly exitStatus: number;
  readonly finishedAtNs: Int64;
  readonly reason: ExitReason;
  readonly message: string;
}

/** How it is wanted to end, and how far that is. */
export interface ContainerStop {
  readonly signal: number;
  /** null: at once. */
  readonly killAtNs: Int64 | null;
  readonly kill: KillState;
  /** The signal that was sent last; 0: none was. */
  readonly killSignal: number;
  /** Absent: no NRI plugin wants it gone. */
  readonly evicted?: Eviction;
}

/** Before StartContainer. */
interface Unstarted {
  /** The NRI plugin that wants it gone: it is never started. Absent: none does. */
  readonly evicted?: Eviction;
}

/** From StartContainer on, as long as nobody can say that it runs. */
interface ContainerStart {
  /** An exit that was told of before the start was. */
  readonly exitSeen: TaskExit | null;
  readonly oomed: boolean;
  readonly stop: ContainerStop | null;
}

/** What is known of a container since it was started. */
export interface ContainerRun {
  readonly task: LaunchedTask;
  readonly startedAtNs: Int64;
  readonly oomed: boolean;
  readonly stop: ContainerStop | null;
  /** Commands under way. */
  readonly execs: readonly string[];
  /** Commands of an earlier life of the daemon: their shim ends them once it answers (C19). */
  readonly staleExecs: readonly string[];
}

/**
 * Of its task. Where somebody has to know its process before it runs, or it was made ahead, it is made by itself: making ──>
 * made, with the process. stale ──> clearing ──> none: what was made ahead is no good, and is deleted first. inDoubt: the
 * daemon ended while its start was under way, and its shim is asked what became of it (C19).
 */
export type ContainerLaunch = 'none' | 'stale' | 'clearing' | 'making' | 'made' | 'doing' | 'inDoubt' | 'failed';

/** A task that nobody has asked to be started yet. */
export type TaskAhead = { readonly step: 'done'; readonly task: LaunchedTask } | { readonly step: 'doing' | TaskLeft };

/** How far the deletion is of a task that is over, or given up. failed: it is still to be deleted. */
export type TaskLeft = 'failed' | 'undoing' | 'undone' | 'owed';

/**
 *   creating ──> created ──> starting ──> running ──────────────> exited
 *                             │  │           │  └──> dead ─────────^ ^
 *                             │  │           └────────┴──> lost ─────┤
 *                             │  └──(no answer)─> startLost ─────────┤
 *                             └──(StartError)────────────────────────┘
 *
 * Whatever its phase, its goal may become `remove` or `undo`: it is then stopped, its task is deleted, and it is gone. What
 * CRI shows of each phase is in container-state.ts, and every way from one to another in container/phases.ts.
 */
export type ContainerPhase =
  /** Until container.created, which follows when its files are made. */
  | ({ readonly kind: 'creating'; readonly inspection: 'none' | 'doing' | 'done' | 'failed' } & Unstarted)
  | ({ readonly kind: 'created'; readonly claimed: boolean; readonly ahead?: TaskAhead } & Unstarted)
  | ({ readonly kind: 'starting'; readonly launch: ContainerLaunch; readonly made?: LaunchedTask } & ContainerStart)
  /** What became of its start nobody will tell: what there may be of a task is deleted, and the start has failed then. */
  | ({ readonly kind: 'startLost'; readonly message: string; readonly taskLeft: TaskLeft } & ContainerStart)
  | { readonly kind: 'running'; readonly run: ContainerRun }
  /** Its process was found dead at start-up and the exit code is not known yet (C18). */
  | { readonly kind: 'dead'; readonly run: ContainerRun }
  /** Nobody will tell its exit code: what may be left of its task is deleted, and it has exited then. */
  | {
      readonly kind: 'lost';
      readonly run: ContainerRun;
      readonly message: string;
      readonly foundDead: boolean;
      readonly taskLeft: 'done' | TaskLeft;
    }
  /** The second when its start failed, perhaps before there was a task. */
  | ({ readonly kind: 'exited'; readonly exit: ContainerExit } & (
      | { readonly run: ContainerRun; readonly taskLeft: 'done' | TaskLeft }
      | { readonly run: null; readonly taskLeft: 'none' | TaskLeft }
    ));

/** An image that a container's config mounts as a volume, by the name that the config has for it. */
export interface MountedImage {
  readonly image: string;
  readonly imageId: string;
  /** Of its layers, base first. */
  readonly chainIds: readonly string[];
}

export interface Container {
  readonly id: string;
  readonly seq: number;
  readonly name: string;
  readonly podSandboxId: string;
  readonly config: ContainerConfig;
  /** Its limits since they were changed; before, they are those of `config`, which stays as it was asked for (C5). */
  readonly resources?: LinuxContainerResources;
  /** Limits that are being put in force, or may be half-way: after a restart, or without an answer of the shim (C19). */
  readonly update?: ContainerUpdate;
  /** Where a checkpoint's archive is being written, or was when the daemon ended: then that is still to be cleared up (C19). */
  readonly checkpoint?: string;
  readonly imageId: string;
  readonly imageConfig: ImageConfig;
  readonly chainIds: readonly string[];
  /** Absent: none. */
  readonly mountedImages?: readonly MountedImage[];
  /** The archive whose processes its start restores; absent: it starts anew. */
  readonly checkpointArchive?: string;
  readonly createdAtNs: Int64;
  readonly goal: ContainerGoal;
  readonly phase: ContainerPhase;
  readonly files: StepState;
  /** Absent: no NRI plugin has anything to do with it. */
  readonly nri?: ContainerNri;
  /** null until it was inspected. */
  readonly facts: ContainerFacts | null;
  readonly rootfs: readonly Mount[];
  readonly failure: Failure | null;
  readonly owedFailure: Failure | null;
  readonly undoFailures: number;
}

export interface Image {
  readonly id: string;
  readonly seq: number;
  readonly content: ImageContent;
  readonly pulledAtNs: Int64;
  /** Removed for every client; its content goes once no container stands on it, but for what pulls under way need. */
  readonly removing: boolean;
  /** Pulled again since its content was last asked to go: what of it is there may stay behind that deletion. */
  readonly pulledAgain?: true;
  /** Not on the disk for certain: waiting for SyncImage, or that is under way. Absent: it is on the disk. */
  readonly unsynced?: 'waiting' | 'syncing';
  readonly undoFailures: number;
}

/** An effect that was requested and has no outcome yet. */
export interface OpenEffect {
  readonly id: string;
  readonly stream: string;
  readonly intent: Intent;
  readonly call: number | null;
}

/** A call without an answer. `target` says what it waits for: see call/catalogue.ts. */
export interface OpenCall {
  readonly seq: number;
  readonly stream: string;
  readonly request: CallRequest;
  readonly target: string;
  readonly monoNs: Int64;
  readonly detached: boolean;
}

export interface NodeState {
  facts: DaemonFacts | null;
  network: ConfiguredNetwork & {
    /** Of runtime handlers that have a network of their own, by name. */
    readonly handlers?: Readonly<Record<string, ConfiguredNetwork>>;
  };
  podCidr: string;
  /** What shows that the journal is not all that was written here, unless somebody knows of it. Absent: nothing. */
  journalDoubts?: readonly JournalDoubt[] | undefined;
  /** Digests of heads that the journal does not contain, and of which somebody knows. Absent: none. */
  acknowledgedHeads?: readonly string[] | undefined;
  /** SHA-256 of the archives of checkpoints that were written here, oldest first. Absent: none. */
  checkpointDigests?: readonly string[] | undefined;
  /** NRI plugins that are there, in the order in which they registered. Absent: none. */
  nriPlugins?: readonly NriPlugin[] | undefined;
  readonly sandboxes: Map<string, PodSandbox>;
  readonly containers: Map<string, Container>;
  readonly images: Map<string, Image>;
  /** CRI name (name_namespace_uid_attempt) to the id of its one owner, sandboxes and containers alike. */
  readonly names: Map<string, string>;
  readonly effects: Map<string, OpenEffect>;
  readonly calls: Map<number, OpenCall>;
}

export const initialState = (): NodeState => ({
  facts: null,
  network: { confList: null, problem: 'no network configuration was read yet' },
  podCidr: '',
  sandboxes: new Map(),
  containers: new Map(),
  images: new Map(),
  names: new Map(),
  effects: new Map(),
  calls: new Map(),
});

export function containersOf(state: NodeState, podSandboxId: string): Container[] {
  const found: Container[] = [];
  for (const container of state.containers.values()) if (container.podSandboxId === podSandboxId) found.push(container);
  return found;
}

/** Makes one state what another is; the other must not be used any more. */
export function replaceState(state: NodeState, by: NodeState): void {
  const { facts, network, podCidr, journalDoubts, acknowledgedHeads, checkpointDigests, nriPlugins } = by;
  Object.assign(state, { facts, network, podCidr, journalDoubts, acknowledgedHeads, checkpointDigests, nriPlugins });
  refill(state.sandboxes, by.sandboxes);
  refill(state.containers, by.containers);
  refill(state.images, by.images);
  refill(state.names, by.names);
  refill(state.effects, by.effects);
  refill(state.calls, by.calls);
}

function refill<Key, Value>(map: Map<Key, Value>, by: ReadonlyMap<Key, Value>): void {
  map.clear();
  for (const [key, value] of by) map.set(key, value);
}

/** A state that evolves on its own from here on; the objects in it are shared, since nobody changes them. */
export const copyState = (state: NodeState): NodeState => ({
  ...state,
  sandboxes: new Map(state.sandboxes),
  containers: new Map(state.containers),
  images: new Map(state.images),
  names: new Map(state.names),
  effects: new Map(state.effects),
  calls: new Map(state.calls),
});
