/**
 * The steps that a PodSandbox is made of, a row each: what makes it and what undoes it, when it is needed, what it waits
 * for on the way up and on the way down, and what its success says of the pod. The process manager (advance.ts), the fold
 * (evolve.ts) and the requests (requests.ts) all work from this table; nothing else knows the order of steps. Must decide
 * nothing.
 */
import { type EffectRequest, misplaced, perform } from '../deciding/effect-request.ts';
import { isShimInUse } from '../deciding/shared-shim.ts';
import type { Refused } from '../model/result.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { Effect, EffectKind, EffectOf, EffectResults } from '../model/effects.ts';
import type { SandboxStep } from '../model/effects/pod-sandbox.ts';
import { bundlePath, netnsPath, sandboxDir, shmPath } from '../model/paths.ts';
import type { EffectEnded, Intent } from '../model/records.ts';
import type { Sandboxer } from '../model/sandboxer.ts';
import type { NodeState, PodSandbox, StepState } from '../model/state.ts';
import type { Mount, ShimOrigin } from '../model/tasks.ts';
import { etcFiles } from '../oci/etc-files.ts';
import { hasHostIpc, namespacePins } from '../oci/namespaces.ts';
import { seccompFileOf, seccompProfileOf } from '../oci/seccomp.ts';
import { pinnedSysctls, sandboxSpecOf } from '../oci/specs.ts';
import { hasOwnUsers, usersOf } from '../oci/user-namespace.ts';
import { hasNamespaces } from './sandboxer.ts';

/** How a pod is held; `pauseOfUsers`: by a pause task that makes the pod's own users. */
type Variant = Sandboxer | 'pauseOfUsers';

export const VARIANTS = ['pause', 'pauseOfUsers', 'none', 'shim'] as const satisfies readonly Variant[];

export interface StepRow {
  readonly step: SandboxStep;
  /** Pods held like this have it so; a variant without a row for a step does without the step. */
  readonly of: readonly Variant[];
  /**
   * Asked for by one record: each begins once the one before it has succeeded, and fails with its words when that failed.
   * The step is made when the last is.
   */
  readonly make: readonly [StepEffect, ...StepEffect[]];
  readonly undo: StepEffect;
  /** False: the pod is ready without it. A step that older journals do not have asks for the rules that it came with (C13). */
  readonly needed: (sandbox: PodSandbox, rules: number) => boolean;
  /** These have to be made before, where they are needed. */
  readonly after: readonly SandboxStep[];
  /** Asked for by the same record as this step, where that is needed, and begun once it is made: a trip to the disk less. */
  readonly follows?: SandboxStep;
  /** A stopped pod has it until it is removed: it is undone last, when nothing else is left. */
  readonly isKept?: true;
  /** Undone only when nothing is left of these. Whatever it is, the containers' tasks go first. */
  readonly undoAfter: readonly SandboxStep[];
  /** The undoing of these was tried, and may be owed. */
  readonly undoAfterTrying?: readonly SandboxStep[];
  /** NRI plugins hear of the pod's stop before it is undone. */
  readonly undoAfterHook?: true;
  /** Where its undoing fails, it goes with this one. */
  readonly goesWith?: SandboxStep;
  /** What is forgotten with it when it is undone in a pod that goes on. */
  readonly forgotten?: Partial<PodSandbox>;
}

/*
 *   run:     files ──> shim ──┐
 *            netns ──┬────────┴──> task ──┐
 *                    └──> network ────────┴──> ready
 *   With a user namespace the task makes the network namespace, in the pod's own users' name:
 *
 *   run:     files ──> shim ──> task ──> netns ──> network ──> ready
 *
 *   stop:    containers' tasks ──> task ──┬──> shim          (network is detached meanwhile)
 *            network ─────────────────────┴──> netns ──> stopped
 *   remove, undo: the same, then containers and files ──> gone
 *
 * Where the shim has a sandbox service of its own, its sandbox is the task, and one that does not stop ends with its shim.
 *
 * A pod without a pause task is ready without a shim, which is started beside and may come later (shim.ts).
 *
 *   run:     files, namespaces, network ──> ready            files ──> shim
 *   stop:    containers' tasks ──> shim, network ──> namespaces ──> stopped
 *
 * NRI plugins that want to are asked, or told, in between; nobody waits where none does:
 *
 *   run:     all of it ──> RunPodSandbox ──> ready
 *   stop:    task ──> StopPodSandbox ──> network, netns, namespaces
 *   remove:  all of it ──> RemovePodSandbox ──> gone
 */
const always = (): boolean => true;
const hasNetwork = ({ network }: PodSandbox): boolean => network !== null;
const isHeld = ({ sandboxer }: PodSandbox): boolean => sandboxer !== 'none';

const netns = {
  step: 'netns',
  make: [
    effect('CreateNetns', ({ id, config, task }, facts) => ({
      path: netnsPath(facts, id),
      ...(hasOwnUsers(config) && task !== null ? { holder: task } : {}),
    })),
  ],
  undo: effect('RemoveNetns', ({ id }, facts) => ({ path: netnsPath(facts, id) })),
  needed: hasNetwork,
  undoAfter: ['task'],
  undoAfterTrying: ['network'],
  undoAfterHook: true,
} as const;

const pauseTask = {
  step: 'task',
  make: [effect('CreateTask', createPauseTask), effect('StartTask', pauseTaskOf, ({ task }) => ({ task }))],
  undo: effect('DeleteTask', pauseTaskOf),
  needed: always,
  undoAfter: [],
} as const;

/** In the order in which those are asked for that may begin at the same moment. */
export const STEP_ROWS: readonly StepRow[] = [
  {
    step: 'files',
    of: VARIANTS,
    make: [effect('PreparePodSandbox', preparePodSandbox, ({ rootfs }) => ({ rootfs }))],
    undo: effect('CleanPodSandbox', ({ id, image }, facts) => ({
      paths: [sandboxDir(facts, id), bundlePath(facts, id)],
      hasSnapshot: image !== null,
    })),
    needed: always,
    after: [],
    undoAfter: [],
    isKept: true,
  },
  {
    step: 'shim',
    of: VARIANTS,
    make: [effect('StartShim', shimOf, ({ shim }) => ({ shim, shimContact: 'connected' }))],
    undo: effect('StopShim', stopShim),
    needed: isHeld,
    after: ['files'],
    undoAfter: ['task'],
    forgotten: { shim: null, shimContact: 'none', shimSilences: 0 },
  },
  { ...netns, of: ['pause', 'shim'], after: [] },
  { ...netns, of: ['pauseOfUsers'], after: ['task'] },
  {
    step: 'namespaces',
    of: ['none'],
    make: [
      effect('PinNamespaces', (sandbox, facts) => ({
        pins: namespacePins(facts, sandbox.id, sandbox.config),
        hostname: sandbox.config.hostname || null,
        sysctls: pinnedSysctls(facts, sandbox),
      })),
    ],
    undo: effect('UnpinNamespaces', ({ id, config }, facts) => ({ pins: namespacePins(facts, id, config) })),
    needed: ({ config }) => hasNamespaces(config),
    after: [],
    undoAfter: [],
    undoAfterTrying: ['network'],
    undoAfterHook: true,
  },
  {
    step: 'network',
    of: VARIANTS,
    make: [
      effect(
        'AttachNetwork',
        ({ network }) => (network === null ? misplaced({ kind: 'AttachNetwork' }, 'the host network') : { network }),
        ({ ips, result }) => ({ ips, networkResult: result ?? null }),
      ),
    ],
    undo: effect('DetachNetwork', ({ network, networkResult: result }) =>
      network === null ? misplaced({ kind: 'DetachNetwork' }, 'the host network') : { network, result },
    ),
    needed: hasNetwork,
    after: ['netns'],
    follows: 'namespaces',
    undoAfter: [],
    undoAfterHook: true,
  },
  { ...pauseTask, of: ['pause'], after: ['shim', 'netns'] },
  { ...pauseTask, of: ['pauseOfUsers'], after: ['shim'] },
  {
    step: 'task',
    of: ['shim'],
    make: [
      effect('StartSandbox', startSandbox, ({ task, platform }) => ({
        task,
        ...(platform === undefined ? {} : { platform }),
      })),
    ],
    undo: effect('StopSandbox', () => ({ timeoutSeconds: STOP_SANDBOX_SECONDS })),
    needed: always,
    after: ['shim', 'netns'],
    undoAfter: [],
    goesWith: 'shim',
  },
];

/** NRI plugins hear of the pod's stop once the undoing of these was tried. */
export const STOP_HOOK_AFTER_TRYING: readonly SandboxStep[] = ['task'];

/** Of whatever pod. */
export const SANDBOX_STEPS: readonly SandboxStep[] = [...new Set(STEP_ROWS.map(({ step }) => step))];

/** How many undoings come before this one, one after the other. */
const undoDepth = ({ isKept, undoAfter, undoAfterTrying = [] }: StepRow): number =>
  isKept === true
    ? Number.POSITIVE_INFINITY
    : STEP_ROWS.filter(({ step }) => undoAfter.includes(step) || undoAfterTrying.includes(step)).reduce(
        (depth, row) => Math.max(depth, 1 + undoDepth(row)),
        0,
      );

const byVariant = (rows: readonly StepRow[]): Readonly<Record<Variant, readonly StepRow[]>> => {
  const rowsOf = (variant: Variant): readonly StepRow[] => rows.filter((row) => row.of.includes(variant));
  return { pause: rowsOf('pause'), pauseOfUsers: rowsOf('pauseOfUsers'), none: rowsOf('none'), shim: rowsOf('shim') };
};

const making = byVariant(STEP_ROWS);
const undoing = byVariant(STEP_ROWS.toSorted((a, b) => undoDepth(a) - undoDepth(b)));

const variantOf = ({ sandboxer, config }: Pick<PodSandbox, 'sandboxer' | 'config'>): Variant =>
  sandboxer === 'pause' && hasOwnUsers(config) ? 'pauseOfUsers' : sandboxer;

/** The steps of this pod, in the order in which they are asked for. */
export const stepsOf = (sandbox: PodSandbox): readonly StepRow[] => making[variantOf(sandbox)];

/** The same in the order in which their undoing is asked for. */
export const stepsToUndo = (sandbox: PodSandbox): readonly StepRow[] => undoing[variantOf(sandbox)];

/** How far a step is; whatever was never asked for is not in the state. */
export const stateOf = ({ steps }: Pick<PodSandbox, 'steps'>, step: SandboxStep): StepState => steps[step] ?? 'none';

/** What an effect is to a pod's steps; undefined where it is about something else. */
export function roleOf(
  sandbox: PodSandbox,
  kind: EffectKind,
): { readonly row: StepRow; readonly effect: StepEffect; readonly is: 'begun' | 'made' | 'undone' } | undefined {
  for (const row of stepsOf(sandbox)) {
    if (row.undo.kind === kind) return { row, effect: row.undo, is: 'undone' };
    const made = row.make.find((making) => making.kind === kind);
    if (made !== undefined) return { row, effect: made, is: made === row.make.at(-1) ? 'made' : 'begun' };
  }
  return undefined;
}

/** The effect that has to succeed before this one begins, where one record asks for both. */
export function followedBy(sandbox: PodSandbox, kind: EffectKind): EffectKind | undefined {
  const row = roleOf(sandbox, kind)?.row;
  const place = row?.make.findIndex((making) => making.kind === kind) ?? -1;
  if (row === undefined || place < 0) return undefined;
  if (place > 0) return row.make[place - 1]?.kind;
  return stepsOf(sandbox)
    .find(({ step }) => step === row.follows)
    ?.make.at(-1)?.kind;
}

/** The request of an effect that makes or undoes a step; undefined where it is about something else. */
export const stepRequest = (
  sandbox: PodSandbox,
  facts: DaemonFacts,
  state: NodeState,
  kind: EffectKind,
): EffectRequest | undefined => roleOf(sandbox, kind)?.effect.request(sandbox, facts, state);

/** Effects whose intent says nothing but what is done. */
type PlainKind = { [K in EffectKind]: { readonly kind: K } extends Intent ? K : never }[EffectKind];
type Asked<K extends EffectKind> = Omit<EffectOf<K>, 'kind' | 'podSandboxId'>;

interface StepEffect {
  readonly kind: PlainKind;
  readonly request: (sandbox: PodSandbox, facts: DaemonFacts, state: NodeState) => EffectRequest;
  /** What its success says of the pod. */
  readonly made: (outcome: EffectEnded) => Partial<PodSandbox>;
}

/** `request`: all of it but what it is and the pod's id. */
function effect<K extends PlainKind>(
  kind: K,
  request: (sandbox: PodSandbox, facts: DaemonFacts, state: NodeState) => Asked<K> | Refused,
  made: (result: EffectResults[K]) => Partial<PodSandbox> = () => ({}),
): StepEffect {
  return {
    kind,
    request(sandbox, facts, state) {
      const asked = request(sandbox, facts, state);
      if ('ok' in asked) return asked;
      // The compiler can't see that the rest of an effect of this kind, with the kind, is an effect.
      return perform({ kind, podSandboxId: sandbox.id, ...asked } as unknown as Effect);
    },
    made: ({ result }) => (result === undefined ? {} : made(result as EffectResults[K])),
  };
}

/** /dev/shm of a pod, as Docker and containerd size it. */
const SHM_SIZE_BYTES = 64 * 1024 * 1024;

/** For a sandbox whose containers are gone already; what takes longer ends with its shim. */
const STOP_SANDBOX_SECONDS = 10;

function preparePodSandbox(sandbox: PodSandbox, facts: DaemonFacts): Asked<'PreparePodSandbox'> | Refused {
  const { id, config, image, selinux } = sandbox;
  const built = sandboxSpecOf(facts, sandbox);
  if (!built.ok) return built;
  return {
    dir: sandboxDir(facts, id),
    files: etcFiles(config, facts.node),
    shm: hasHostIpc(config) ? null : { path: shmPath(facts, id), sizeBytes: SHM_SIZE_BYTES },
    bundle: { id, path: bundlePath(facts, id), spec: built.value },
    seccompProfilePath: seccompFileOf(seccompProfileOf(config.linux?.securityContext)),
    chainIds: image?.chainIds ?? null,
    ...(selinux === undefined ? {} : { mountLabel: selinux.mount }),
    ...usersOf(config),
  };
}

function shimOf(sandbox: PodSandbox, facts: DaemonFacts): Asked<'StartShim'> {
  const { id, handler } = sandbox;
  return { handler, bundlePath: bundlePath(facts, id), ...sharedShimOf(sandbox, facts) };
}

/** For an effect on the pod's shim; nothing of a shim of its own. */
export function sharedShimOf({ sharedShimId: id }: PodSandbox, facts: DaemonFacts): { readonly shared?: ShimOrigin } {
  return id === undefined ? {} : { shared: { id, dir: bundlePath(facts, id) } };
}

function stopShim(sandbox: PodSandbox, facts: DaemonFacts, state: NodeState): Asked<'StopShim'> {
  const { shared, ...asked } = shimOf(sandbox, facts);
  return {
    ...asked,
    shim: sandbox.shim,
    ...(shared === undefined ? {} : { shared: { ...shared, isInUse: isShimInUse(state, sandbox) } }),
    hasSandbox: sandbox.sandboxer === 'shim',
  };
}

function pauseTaskOf({ id, handler }: PodSandbox, facts: DaemonFacts): Asked<'StartTask'> {
  return { containerId: id, handler, bundlePath: bundlePath(facts, id) };
}

function createPauseTask(sandbox: PodSandbox, facts: DaemonFacts): Asked<'CreateTask'> {
  return {
    ...pauseTaskOf(sandbox, facts),
    rootfs: hasOwnUsers(sandbox.config) ? [pauseMount(facts)] : sandbox.rootfs,
    terminal: false,
    stdin: false,
    stdinOnce: false,
    log: null,
    ...usersOf(sandbox.config),
  };
}

/** Where it lies, only the node's root can look; where it is mounted, anybody can. */
const pauseMount = ({ pauseRootfs }: DaemonFacts): Mount => ({
  type: 'bind',
  source: pauseRootfs,
  options: ['rbind', 'ro'],
});

function startSandbox({ id, shim, rootfs, network, config }: PodSandbox, facts: DaemonFacts) {
  if (shim === null) return misplaced({ kind: 'StartSandbox' }, 'a pod without a shim');
  return { shim, bundlePath: bundlePath(facts, id), rootfs, netnsPath: network?.netnsPath ?? null, config };
}
