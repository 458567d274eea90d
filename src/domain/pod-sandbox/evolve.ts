/** What a record of its stream changes in a PodSandbox. */
import { triedAgain } from '../deciding/steps.ts';
import type { EffectKind } from '../model/effects.ts';
import type { Failure } from '../model/errors.ts';
import type { EffectEnded, Intent, Sequenced } from '../model/records.ts';
import type { Image, NodeState, PodSandbox, SandboxStep, StepState } from '../model/state.ts';
import { stepEffects } from './sandboxer.ts';

export const SANDBOX_STEPS = [
  'files',
  'netns',
  'namespaces',
  'network',
  'shim',
  'task',
] as const satisfies readonly SandboxStep[];

export function evolvePodSandbox(state: NodeState, id: string, record: Sequenced): void {
  if (record.type === 'sandbox.requested') {
    state.names.set(record.body.name, id);
    const image = record.body.imageId === null ? undefined : state.images.get(record.body.imageId);
    state.sandboxes.set(id, requested(id, record, image));
    return;
  }
  const sandbox = state.sandboxes.get(id);
  if (sandbox === undefined) return;
  if (record.type === 'sandbox.removed') {
    state.sandboxes.delete(id);
    state.names.delete(sandbox.name);
    return;
  }
  const changed = changedBy(sandbox, record);
  if (changed !== sandbox) state.sandboxes.set(id, changed);
}

type Requested = Sequenced<Extract<Sequenced, { type: 'sandbox.requested' }>>;

function requested(id: string, record: Requested, image: Image | undefined): PodSandbox {
  const { name, config, runtimeHandler, handler, network, sandboxer = 'pause', selinux, restore } = record.body;
  return {
    id,
    seq: record.seq,
    name,
    config,
    runtimeHandler,
    handler,
    sandboxer,
    ...(selinux === undefined ? {} : { selinux }),
    ...(restore === undefined ? {} : { restore: { ...restore, begun: false } }),
    network,
    image:
      image === undefined
        ? null
        : { id: image.id, config: image.content.config, chainIds: image.content.layers.map(({ chainId }) => chainId) },
    rootfs: [],
    createdAtNs: String(record.atNs),
    goal: 'run',
    phase: 'creating',
    stopped: false,
    steps: { files: 'none', netns: 'none', namespaces: 'none', network: 'none', shim: 'none', task: 'none' },
    ips: [],
    networkResult: null,
    shim: null,
    shimContact: 'none',
    shimSilences: 0,
    task: null,
    taskExit: null,
    kill: 'none',
    claimed: false,
    failure: null,
    owedFailure: null,
    undoFailures: 0,
  };
}

function changedBy(sandbox: PodSandbox, record: Sequenced): PodSandbox {
  switch (record.type) {
    case 'effects.requested':
      return record.body.effects.reduce(started, sandbox);
    case 'effect.ended':
      return ended(sandbox, record.body);
    case 'sandbox.restoring':
      return sandbox.restore === undefined ? sandbox : { ...sandbox, restore: { ...sandbox.restore, begun: true } };
    case 'sandbox.ready':
      return { ...sandbox, phase: 'ready', claimed: record.body.claimed };
    case 'sandbox.claimed':
      return { ...sandbox, claimed: true };
    case 'sandbox.failed':
      return { ...sandbox, goal: 'undo', phase: 'notReady', failure: record.body.failure };
    case 'sandbox.lost':
      return { ...sandbox, phase: 'notReady' };
    case 'sandbox.updated':
      return { ...sandbox, limits: record.body };
    case 'sandbox.stopping':
      return { ...sandbox, goal: 'stop', phase: 'notReady' };
    case 'sandbox.stopped':
      return { ...sandbox, stopped: true, ips: [] };
    case 'sandbox.removing':
      return { ...sandbox, goal: 'remove', phase: 'notReady' };
    case 'undo.retried':
      return { ...sandbox, steps: mapSteps(sandbox, triedAgain), owedFailure: null };
    case 'task.exited':
      return sandbox.taskExit !== null ? sandbox : { ...sandbox, taskExit: record.body.exit };
    case 'shim.lost':
      return { ...sandbox, shimContact: 'gone' };
    default:
      return sandbox;
  }
}

function started(sandbox: PodSandbox, intent: Intent): PodSandbox {
  const { kind } = intent;
  if (kind === 'KillTask') return { ...sandbox, kill: 'sent' };
  if (kind === 'CheckpointPod') {
    const { outputPath, containerIds } = intent;
    return { ...sandbox, checkpoint: { outputPath, containerIds } };
  }
  const step = stepOf(sandbox, kind);
  if (step === undefined) return sandbox;
  return withStep(sandbox, step, stepEffects(sandbox.sandboxer, step).make === kind ? 'doing' : 'undoing');
}

/** The step that this effect makes or undoes. */
const stepOf = ({ sandboxer }: PodSandbox, kind: EffectKind): SandboxStep | undefined =>
  SANDBOX_STEPS.find((step) => {
    const { make, undo } = stepEffects(sandboxer, step);
    return make === kind || undo === kind;
  });

function ended(sandbox: PodSandbox, outcome: EffectEnded): PodSandbox {
  if (outcome.kind === 'KillTask') return { ...sandbox, kill: outcome.failure !== undefined ? 'futile' : 'done' };
  if (outcome.kind === 'ReconnectShim') return reconnected(sandbox, outcome);
  if (outcome.kind === 'CheckpointPod') return withoutCheckpoint(sandbox);
  if (outcome.kind === 'EndPodCheckpoint') return outcome.failure === undefined ? withoutCheckpoint(sandbox) : sandbox;
  // What does not stop ends with its shim, which is ended next, by force where it does not go.
  if (outcome.kind === 'StopSandbox') return undone(sandbox, 'task', undefined);
  const step = stepOf(sandbox, outcome.kind);
  if (step === undefined) return sandbox;
  if (stepEffects(sandbox.sandboxer, step).undo === outcome.kind) return undone(sandbox, step, outcome.failure);
  if (outcome.failure !== undefined)
    return { ...withStep(sandbox, step, 'failed'), failure: sandbox.failure ?? outcome.failure };
  return { ...withStep(sandbox, step, 'done'), ...madeBy(outcome) };
}

/** Nobody knows how this effect ended. */
export function cutShort(sandbox: PodSandbox, { kind }: Intent, failure: Failure): PodSandbox {
  if (kind === 'KillTask') return { ...sandbox, kill: 'none' };
  if (kind === 'ReconnectShim') return muted(sandbox);
  const step = stepOf(sandbox, kind);
  return step === undefined ? sandbox : { ...withStep(sandbox, step, 'failed'), failure: sandbox.failure ?? failure };
}

const muted = (sandbox: PodSandbox): PodSandbox => ({
  ...sandbox,
  shimContact: 'mute',
  shimSilences: sandbox.shimSilences + 1,
});

const withoutCheckpoint = ({ checkpoint: _checkpoint, ...sandbox }: PodSandbox): PodSandbox => sandbox;

function undone(sandbox: PodSandbox, step: SandboxStep, failure: Failure | undefined): PodSandbox {
  if (failure === undefined) return { ...withStep(sandbox, step, 'undone'), ...forgottenWith(sandbox, step) };
  return { ...withStep(sandbox, step, 'owed'), owedFailure: failure, undoFailures: sandbox.undoFailures + 1 };
}

/** A pod that goes on without its shim may get another one. */
const forgottenWith = ({ sandboxer, goal }: PodSandbox, step: SandboxStep): Partial<PodSandbox> =>
  step === 'shim' && sandboxer === 'none' && goal === 'run' ? { shim: null, shimContact: 'none', shimSilences: 0 } : {};

/** What a successful effect tells of the sandbox. */
function madeBy(outcome: EffectEnded): Partial<PodSandbox> {
  switch (outcome.kind) {
    case 'PreparePodSandbox':
      return { rootfs: outcome.result?.rootfs ?? [] };
    case 'AttachNetwork':
      return { ips: outcome.result?.ips ?? [], networkResult: outcome.result?.result ?? null };
    case 'StartShim':
      return { shim: outcome.result?.shim ?? null, shimContact: 'connected' };
    case 'StartTask':
      return { task: outcome.result?.task ?? null };
    case 'StartSandbox': {
      const { task = null, platform } = outcome.result ?? {};
      return { task, ...(platform === undefined ? {} : { platform }) };
    }
    default:
      return {};
  }
}

function reconnected(sandbox: PodSandbox, outcome: Extract<EffectEnded, { kind: 'ReconnectShim' }>): PodSandbox {
  if (outcome.result === undefined) return muted(sandbox);
  if (outcome.result.gone) return { ...sandbox, shimContact: 'gone' };
  const own = outcome.result.tasks.find((task) => task.containerId === sandbox.id);
  // A task its shim knows nothing of has no exit to wait for.
  const kill = own?.status === 'absent' ? 'futile' : sandbox.kill;
  return {
    ...sandbox,
    shimContact: 'connected',
    shimSilences: 0,
    taskExit: sandbox.taskExit ?? own?.exit ?? null,
    kill,
  };
}

const withStep = (sandbox: PodSandbox, step: SandboxStep, to: StepState): PodSandbox => ({
  ...sandbox,
  steps: { ...sandbox.steps, [step]: to },
});

const mapSteps = (sandbox: PodSandbox, change: (step: StepState) => StepState): PodSandbox['steps'] => ({
  files: change(sandbox.steps.files),
  netns: change(sandbox.steps.netns),
  namespaces: change(sandbox.steps.namespaces),
  network: change(sandbox.steps.network),
  shim: change(sandbox.steps.shim),
  task: change(sandbox.steps.task),
});
