/** An engine on a journal in memory, with effects that succeed at once unless a test says otherwise, and a clock it turns. */
import type { DaemonFacts } from '../../src/domain/model/daemon-facts.ts';
import { copyState, initialState, type NodeState } from '../../src/domain/model/state.ts';
import { createEngine, type Engine, type EngineOptions } from '../../src/engine/engine.ts';
import type { CallReply, PerformEffects } from '../../src/engine/ports.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { foldJournal } from '../support/fold.ts';
import { createMemoryJournal, emptyContents, type MemoryContents } from '../../src/journal/memory-journal.ts';
import type { Journal, JournalRecord } from '../../src/journal/types.ts';
import { type PublishedView, publishedView } from '../../src/engine/published-view.ts';
import { createView } from '../../src/projections/view.ts';
import { CONF_LIST, FACTS } from '../simulation/facts.ts';
import { CHECKPOINT, CHECKPOINTED_IMAGE } from '../simulation/checkpoint.ts';
import { IMAGE } from '../simulation/images.ts';

export interface Rig {
  readonly engine: Engine;
  readonly view: PublishedView;
  readonly contents: MemoryContents;
  /** Kinds of effects that were begun, in order. */
  readonly performed: string[];
  readonly call: (draft: CallDraft, signal?: AbortSignal) => Promise<CallReply>;
  /** Lets every promise that can settle do so. */
  readonly settle: () => Promise<void>;
  /** Moves the clock and fires what is due. */
  readonly advance: (ms: number) => Promise<void>;
  /** Sets the wall clock, forth or back; timers wait as long as they were to. */
  readonly setClock: (byMs: number) => void;
  readonly errors: Error[];
  /** Findings, as sentences. */
  readonly reports: string[];
}

export interface RigOptions {
  readonly contents?: MemoryContents;
  readonly perform?: Partial<PerformEffects>;
  readonly commit?: (records: readonly JournalRecord[]) => Promise<void>;
  readonly diskIsFull?: () => boolean;
  readonly deadTasks?: readonly string[];
  readonly rebooted?: boolean;
  readonly nowNs?: bigint;
  readonly facts?: DaemonFacts;
  readonly decide?: EngineOptions['decide'];
  /** Ids of new objects; counted otherwise. */
  readonly hex64?: () => string;
  /** Instead of one in memory; `contents` stays empty. */
  readonly journal?: Journal;
}

const NS_PER_MS = 1_000_000n;
const START_NS = 1_800_000_000_000_000_000n;

export const task = (pid: number) => ({ task: { pid, startTicks: String(pid) } });

/** Every effect, done at once. */
export const successes: PerformEffects = {
  PreparePodSandbox: async () => ({ rootfs: [] }),
  CleanPodSandbox: async () => ({}),
  CreateNetns: async () => ({}),
  PinNamespaces: async () => ({}),
  UnpinNamespaces: async () => ({}),
  RemoveNetns: async () => ({}),
  AttachNetwork: async () => ({ ips: ['10.0.0.2'], result: {} }),
  DetachNetwork: async () => ({}),
  StartShim: async () => ({ shim: { address: 'unix:///s', taskApi: 3, pid: 10, startTicks: '10' } }),
  StopShim: async () => ({}),
  ReconnectShim: async () => ({ gone: false, tasks: [] }),
  StartSandbox: async () => task(11),
  StopSandbox: async () => ({}),
  InspectContainer: async () => ({ facts: { user: { uid: 0, gid: 0, additionalGids: [] }, devices: [], mounts: [] } }),
  PrepareContainer: async () => ({ rootfs: [] }),
  CleanContainer: async () => ({}),
  CreateTask: async ({ containerId, podSandboxId }) => task(containerId === podSandboxId ? 11 : 12),
  StartTask: async ({ containerId, podSandboxId }) => task(containerId === podSandboxId ? 11 : 12),
  KillTask: async () => ({ alreadyGone: false }),
  DeleteTask: async () => ({}),
  RunExec: async () => ({ exitStatus: 0, timedOut: false, stdoutBytes: 0, stderrBytes: 0 }),
  EndExec: async () => ({}),
  StreamExec: async () => ({ exitStatus: 0, stdinBytes: 0, stdoutBytes: 0, stderrBytes: 0 }),
  StreamAttach: async () => ({ stdinBytes: 0, stdoutBytes: 0, stderrBytes: 0 }),
  StreamPort: async () => ({ toPodBytes: 0, fromPodBytes: 0 }),
  ReopenLog: async () => ({}),
  UpdateContainer: async () => ({}),
  CheckpointTask: async () => ({}),
  EndCheckpoint: async () => ({}),
  CheckpointPod: async () => ({}),
  EndPodCheckpoint: async () => ({}),
  ReadCheckpoint: async () => ({ image: CHECKPOINTED_IMAGE }),
  ReadPodCheckpoint: async () => ({ pod: CHECKPOINT }),
  PullImage: async () => ({ image: IMAGE }),
  LoadImages: async () => ({ images: [IMAGE] }),
  SyncImage: async () => ({}),
  DeleteImageContent: async () => ({ freedBytes: 0 }),
  CallPlugins: async () => ({ answers: [] }),
  SynchronizePlugin: async () => ({ answers: [] }),
};

export async function startRig(options: RigOptions = {}): Promise<Rig> {
  const contents = options.contents ?? emptyContents();
  const journal =
    options.journal ??
    createMemoryJournal({ contents, ...(options.commit === undefined ? {} : { commit: options.commit }) });
  const state: NodeState = contents.rows.length === 0 ? initialState() : await foldJournal(journal);
  const view = publishedView(createView(copyState(state), journal.head().seq));
  const performed: string[] = [];
  const errors: Error[] = [];
  const reports: string[] = [];
  let nowNs = options.nowNs ?? START_NS;
  let offsetNs = 0n;
  let timers: { dueAtNs: bigint; fire: () => void }[] = [];
  let ids = contents.rows.length * 100;
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

  const real = { ...successes, ...options.perform };
  const perform = Object.fromEntries(
    Object.entries(real).map(([kind, run]) => [
      kind,
      Object.assign((effect: never, context: never) => {
        performed.push(kind);
        return run(effect, context);
      }, run),
    ]),
  ) as unknown as PerformEffects;

  const engine = createEngine({
    journal,
    state,
    perform,
    clock: {
      nowNs: () => nowNs + offsetNs,
      monoNs: () => nowNs,
      at(dueAtNs, fire) {
        const timer = { dueAtNs: dueAtNs - offsetNs, fire };
        timers.push(timer);
        return () => {
          timers = timers.filter((other) => other !== timer);
        };
      },
    },
    ids: { hex64: options.hex64 ?? (() => String(++ids).padStart(64, '0')), uuid: () => `call-${++ids}` },
    boot: 'boot',
    publish: view.publish,
    published: view.state,
    report: (message) => reports.push(message),
    diskIsFull: options.diskIsFull ?? (() => false),
    fatal: (error) => errors.push(error),
    ...(options.decide === undefined ? {} : { decide: options.decide }),
  });
  await Promise.race([
    engine
      .start({
        facts: options.facts ?? FACTS,
        rebooted: options.rebooted ?? false,
        deadTasks: options.deadTasks ?? [],
        crash: null,
      })
      .catch(() => undefined),
    settle(),
  ]);
  engine.observe({ kind: 'NetworkConfigured', confList: CONF_LIST, problem: null }).catch(() => undefined);
  await settle();
  return {
    engine,
    view,
    contents,
    performed,
    errors,
    reports,
    settle,
    call: (draft, signal) =>
      engine.call(draft, { caller: null, deadlineNs: null, ...(signal === undefined ? {} : { signal }) }),
    setClock: (byMs) => void (offsetNs += BigInt(byMs) * NS_PER_MS),
    async advance(ms) {
      nowNs += BigInt(ms) * NS_PER_MS;
      const due = timers.filter(({ dueAtNs }) => dueAtNs <= nowNs);
      timers = timers.filter(({ dueAtNs }) => dueAtNs > nowNs);
      for (const { fire } of due) fire();
      for (let i = 0; i < 5; i += 1) await settle();
    },
  };
}

/** Lets what follows from what has happened follow, several effects one after the other. */
export const settled = async ({ settle }: Rig): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await settle();
};

export const podConfig = (name = 'pod') => ({ metadata: { name, namespace: 'ns', uid: `${name}-uid` } });
export const runPod = (name = 'pod'): CallDraft => ({
  method: 'RunPodSandbox',
  config: podConfig(name),
  runtimeHandler: '',
});

export const idOf = ({ outcome }: CallReply): string => {
  if (!outcome.ok) throw new Error(`${outcome.failure.reason}: ${outcome.failure.message}`);
  return outcome.value.id ?? '';
};

export const reasonOf = ({ outcome }: CallReply): string => (outcome.ok ? 'OK' : outcome.failure.reason);

/** A pod with one running container; both ids. */
export async function runContainer(rig: Rig): Promise<{ podSandboxId: string; containerId: string }> {
  await rig.call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  const podSandboxId = idOf(await rig.call(runPod()));
  const config = { metadata: { name: 'c' }, image: { image: 'registry.test/app:1' } };
  const containerId = idOf(await rig.call({ method: 'CreateContainer', podSandboxId, config }));
  await rig.call({ method: 'StartContainer', containerId });
  return { podSandboxId, containerId };
}

export const exitOf = (podSandboxId: string, containerId: string, exitStatus: number, pid = 12) =>
  ({
    kind: 'TaskExited',
    podSandboxId,
    containerId,
    execId: null,
    exit: { pid, exitStatus, exitedAtNs: '1800000000000000001', oomKills: 0 },
  }) as const;
