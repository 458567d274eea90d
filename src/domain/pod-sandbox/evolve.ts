/** What a record of its stream changes in a PodSandbox. */
import { triedAgain } from '../deciding/step-states.ts';
import type { SandboxStep } from '../model/effects/pod-sandbox.ts';
import type { Failure } from '../model/errors.ts';
import type { EffectEnded, Intent, Sequenced } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import { type Image, type NodeState, type PodSandbox, SILENCES_MAX } from '../model/state.ts';
import { withAnswers, withHook } from '../nri/told.ts';
import type { PluginHook } from '../model/nri-plugins.ts';
import { roleOf, type StepRow } from './steps.ts';

export function evolvePodSandbox(state: NodeState, id: string, record: Sequenced, intent: Intent | undefined): void {
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
  const changed = changedBy(sandbox, record, intent, rulesOf(state));
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
    steps: {},
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

function changedBy(sandbox: PodSandbox, record: Sequenced, intent: Intent | undefined, rules: number): PodSandbox {
  switch (record.type) {
    case 'effects.requested':
      return record.body.effects.reduce(started, sandbox);
    case 'effect.ended':
      return intent?.kind === 'CallPlugins'
        ? asked(sandbox, intent.hook, record.body.failure)
        : ended(sandbox, record.body, rules);
    case 'sandbox.restoring':
      return sandbox.restore === undefined ? sandbox : { ...sandbox, restore: { ...sandbox.restore, begun: true } };
    case 'sandbox.ready':
      return { ...sandbox, phase: 'ready', claimed: record.body.claimed };
    case 'sandbox.claimed':
      return { ...sandbox, claimed: true };
    case 'sandbox.failed':
      return { ...sandbox, goal: 'undo', phase: 'notReady', ...record.body };
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
      return { ...sandbox, steps: mapSteps(sandbox.steps, triedAgain), owedFailure: null };
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
  if (kind === 'CallPlugins') return withHook(sandbox, intent.hook, 'doing');
  const role = roleOf(sandbox, kind);
  if (role === undefined) return sandbox;
  const changed = withStep(sandbox, role.row.step, role.is === 'undone' ? 'undoing' : 'doing');
  return kind === 'StartShim' ? withShim(changed, intent.sharedShimId) : changed;
}

/** Which one it gets is chosen whenever one is asked for. */
function withShim({ sharedShimId: _before, ...sandbox }: PodSandbox, sharedShimId: string | undefined): PodSandbox {
  // One that may be another pod's by now must never be ended for this one.
  const shim = sandbox.shim?.origin === undefined ? sandbox.shim : null;
  return { ...sandbox, shim, ...(sharedShimId === undefined ? {} : { sharedShimId }) };
}

function ended(sandbox: PodSandbox, outcome: EffectEnded, rules: number): PodSandbox {
  if (outcome.kind === 'KillTask') return { ...sandbox, kill: outcome.failure !== undefined ? 'futile' : 'done' };
  if (outcome.kind === 'ReconnectShim') return reconnected(sandbox, outcome, rules);
  if (outcome.kind === 'CheckpointPod') return withoutCheckpoint(sandbox);
  if (outcome.kind === 'EndPodCheckpoint') return outcome.failure === undefined ? withoutCheckpoint(sandbox) : sandbox;
  const role = roleOf(sandbox, outcome.kind);
  if (role === undefined || role.is === 'begun') return sandbox;
  const { row, effect } = role;
  if (role.is === 'undone') return undone(sandbox, row, outcome.failure);
  if (outcome.failure !== undefined)
    return { ...withStep(sandbox, row.step, 'failed'), failure: sandbox.failure ?? outcome.failure };
  return { ...withStep(sandbox, row.step, 'done'), ...effect.made(outcome) };
}

/** Nobody knows how this effect ended. */
export function cutShort(sandbox: PodSandbox, intent: Intent, failure: Failure, rules: number): PodSandbox {
  const { kind } = intent;
  if (kind === 'CallPlugins') return asked(sandbox, intent.hook, failure);
  if (kind === 'KillTask') return { ...sandbox, kill: 'none' };
  if (kind === 'ReconnectShim') return unheard(sandbox, rules);
  const role = roleOf(sandbox, kind);
  if (role === undefined || role.is === 'begun') return sandbox;
  return { ...withStep(sandbox, role.row.step, 'failed'), failure: sandbox.failure ?? failure };
}

const asked = (sandbox: PodSandbox, hook: PluginHook, failure: Failure | undefined): PodSandbox => ({
  ...withAnswers(sandbox, hook, failure),
  ...(failure !== undefined && hook === 'RunPodSandbox' ? { failure: sandbox.failure ?? failure } : {}),
});

const muted = (sandbox: PodSandbox): PodSandbox => ({
  ...sandbox,
  shimContact: 'mute',
  shimSilences: sandbox.shimSilences + 1,
});

/** It may have answered: nothing of the pod is undone before it was asked again, which follows, but not for ever. */
function unheard(sandbox: PodSandbox, rules: number): PodSandbox {
  const silent = muted(sandbox);
  const isAwaited = rules >= 12 && isShimToGoOn(sandbox) && silent.shimSilences < SILENCES_MAX;
  return isAwaited ? { ...silent, shimContact: 'unknown' } : silent;
}

/** Only a shim that is to go on is asked; one that was being stopped or undone is ended without its help. */
export const isShimToGoOn = ({ shim, steps, goal, phase }: PodSandbox): boolean =>
  shim !== null && steps.shim === 'done' && goal !== 'undo' && phase !== 'creating';

const withoutCheckpoint = ({ checkpoint: _checkpoint, ...sandbox }: PodSandbox): PodSandbox => sandbox;

function undone(sandbox: PodSandbox, row: StepRow, failure: Failure | undefined): PodSandbox {
  if (failure !== undefined && row.goesWith === undefined)
    return { ...withStep(sandbox, row.step, 'owed'), owedFailure: failure, undoFailures: sandbox.undoFailures + 1 };
  return { ...withStep(sandbox, row.step, 'undone'), ...(sandbox.goal === 'run' ? row.forgotten : {}) };
}

function reconnected(
  sandbox: PodSandbox,
  outcome: Extract<EffectEnded, { kind: 'ReconnectShim' }>,
  rules: number,
): PodSandbox {
  if (outcome.failure?.reason === 'Bug') return unheard(sandbox, rules);
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

type Steps = PodSandbox['steps'];
type Asked = NonNullable<Steps[SandboxStep]>;

const withStep = (sandbox: PodSandbox, step: SandboxStep, to: Asked): PodSandbox => ({
  ...sandbox,
  steps: { ...sandbox.steps, [step]: to },
});

export const mapSteps = (steps: Steps, change: (step: Asked) => Asked): Steps =>
  Object.fromEntries(Object.entries(steps).map(([step, state]) => [step, change(state)]));
