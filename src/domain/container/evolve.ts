/** What a record of its stream changes in a container. */
import type { Failure, FailureReason } from '../model/errors.ts';
import type { EffectEnded, Intent, Sequenced } from '../model/records.ts';
import { chainIdsOf } from '../image/mounted.ts';
import type { Container, ContainerStep, MountedImage, NodeState, StepState } from '../model/state.ts';

/** The effect that makes each step, and the one that undoes it. */
const containerSteps = {
  files: { make: 'PrepareContainer', undo: 'CleanContainer' },
  task: { make: 'StartTask', undo: 'DeleteTask' },
} as const;

const CONTAINER_STEPS = ['files', 'task'] as const satisfies readonly ContainerStep[];

export function evolveContainer(state: NodeState, id: string, record: Sequenced, ended: Intent | undefined): void {
  if (record.type === 'container.requested') {
    const image = state.images.get(record.body.imageId);
    state.names.set(record.body.name, id);
    state.containers.set(
      id,
      requested(
        id,
        record,
        image?.content.config ?? {},
        chainIdsOf(state, record.body.imageId),
        mountedBy(state, record),
      ),
    );
    return;
  }
  const container = state.containers.get(id);
  if (container === undefined) return;
  if (record.type === 'container.removed') {
    state.containers.delete(id);
    state.names.delete(container.name);
    return;
  }
  const changed = changedBy(container, record, ended);
  if (changed !== container) state.containers.set(id, changed);
}

type Requested = Sequenced<Extract<Sequenced, { type: 'container.requested' }>>;

const mountedBy = (state: NodeState, { body }: Requested): readonly MountedImage[] | undefined =>
  body.mountedImages?.map((mounted) => ({ ...mounted, chainIds: chainIdsOf(state, mounted.imageId) }));

function requested(
  id: string,
  record: Requested,
  imageConfig: Container['imageConfig'],
  chainIds: readonly string[],
  mountedImages: readonly MountedImage[] | undefined,
): Container {
  const { name, podSandboxId, config, imageId, checkpointArchive } = record.body;
  return {
    id,
    seq: record.seq,
    name,
    podSandboxId,
    config,
    imageId,
    imageConfig,
    chainIds,
    ...(mountedImages === undefined ? {} : { mountedImages }),
    ...(checkpointArchive === undefined ? {} : { checkpointArchive }),
    createdAtNs: String(record.atNs),
    goal: 'create',
    created: false,
    inspection: 'none',
    steps: { files: 'none', task: 'none' },
    facts: null,
    rootfs: [],
    starting: false,
    startInDoubt: false,
    task: null,
    startedAtNs: null,
    taskExit: null,
    oomed: false,
    exitPending: false,
    exit: null,
    lost: null,
    stop: null,
    kill: 'none',
    killSignal: 0,
    execs: [],
    staleExecs: [],
    claimed: false,
    failure: null,
    owedFailure: null,
    undoFailures: 0,
  };
}

function changedBy(container: Container, record: Sequenced, intent: Intent | undefined): Container {
  switch (record.type) {
    case 'effects.requested':
      return record.body.effects.reduce(started, container);
    case 'effect.ended':
      return ended(container, record.body, intent);
    case 'container.created':
      return { ...container, created: true, goal: 'run', claimed: record.body.claimed };
    case 'container.claimed':
      return { ...container, claimed: true };
    case 'container.failed':
      return { ...container, goal: 'undo', failure: record.body.failure };
    case 'container.starting':
      return { ...container, starting: true, claimed: true };
    case 'container.started':
      return {
        ...container,
        starting: false,
        startInDoubt: false,
        task: { pid: record.body.pid, startTicks: record.body.startTicks },
        startedAtNs: String(record.atNs),
        steps: { ...container.steps, task: 'done' },
      };
    case 'container.stopping':
      return { ...container, stop: record.body };
    case 'container.exited': {
      const { exitStatus, exitedAtNs, reason, message } = record.body;
      const step = container.steps.task === 'doing' ? 'failed' : container.steps.task;
      return {
        ...container,
        starting: false,
        startInDoubt: false,
        exitPending: false,
        steps: { ...container.steps, task: step },
        exit: { exitStatus, finishedAtNs: exitedAtNs, reason, message },
      };
    }
    case 'container.updated':
      return { ...withoutUpdate(container), resources: record.body.resources };
    case 'container.lost':
      return withoutDoubt({ ...container, lost: record.body.message });
    case 'container.removing':
      return { ...container, goal: 'remove' };
    case 'undo.retried':
      return {
        ...container,
        owedFailure: null,
        steps: { files: owedAgain(container.steps.files), task: owedAgain(container.steps.task) },
      };
    case 'task.exited':
      return container.taskExit !== null ? container : { ...container, taskExit: record.body.exit };
    case 'task.oomed':
      return { ...container, oomed: true };
    default:
      return container;
  }
}

/** What became of its start will not be known: whatever there may be of a task is to be deleted. */
const withoutDoubt = (container: Container): Container =>
  container.startInDoubt ? { ...withStep(container, 'task', 'failed'), startInDoubt: false } : container;

/** Refused as a whole, with the limits from before in force; any other failure leaves in doubt which ones are. */
const REFUSALS: readonly FailureReason[] = ['RuntimeFailed', 'HostLacks', 'InvalidField', 'Bug'];

export const isSettled = (failure: Failure | undefined): boolean =>
  failure === undefined || REFUSALS.includes(failure.reason);

/** Nothing is being changed about its limits any more. */
export const withoutUpdate = ({
  update: _update,
  updateAnnotations: _annotations,
  ...container
}: Container): Container => container;

const withoutCheckpoint = ({ checkpoint: _checkpoint, ...container }: Container): Container => container;

const owedAgain = (step: StepState): StepState => (step === 'owed' ? 'failed' : step);

function started(container: Container, intent: Intent): Container {
  switch (intent.kind) {
    case 'InspectContainer':
      return { ...container, inspection: 'doing' };
    case 'KillTask':
      return { ...container, kill: 'sent', killSignal: intent.signal };
    case 'UpdateContainer':
      return {
        ...withoutUpdate(container),
        update: intent.resources,
        ...(intent.annotations === undefined ? {} : { updateAnnotations: intent.annotations }),
      };
    case 'CheckpointTask':
      return { ...container, checkpoint: intent.location };
    case 'RunExec':
    case 'StreamExec':
      return { ...container, execs: [...container.execs, intent.execId] };
    default: {
      const step = stepOf(intent.kind);
      if (step === undefined) return container;
      return withStep(container, step, containerSteps[step].make === intent.kind ? 'doing' : 'undoing');
    }
  }
}

function ended(container: Container, outcome: EffectEnded, intent: Intent | undefined): Container {
  switch (outcome.kind) {
    case 'InspectContainer':
      if (outcome.result === undefined) return { ...container, inspection: 'failed', failure: outcome.failure ?? null };
      return { ...container, inspection: 'done', facts: outcome.result.facts };
    case 'KillTask':
      return { ...container, kill: outcome.failure !== undefined ? 'futile' : 'done' };
    case 'RunExec':
    case 'StreamExec': {
      const execId = intent?.kind === outcome.kind ? intent.execId : '';
      return { ...container, execs: container.execs.filter((id) => id !== execId) };
    }
    case 'UpdateContainer':
      return isSettled(outcome.failure) ? withoutUpdate(container) : container;
    case 'CheckpointTask':
      return withoutCheckpoint(container);
    case 'EndCheckpoint':
      return outcome.failure === undefined ? withoutCheckpoint(container) : container;
    case 'EndExec': {
      const execId = intent?.kind === 'EndExec' && outcome.failure === undefined ? intent.execId : '';
      return { ...container, staleExecs: container.staleExecs.filter((id) => id !== execId) };
    }
    default: {
      const step = stepOf(outcome.kind);
      if (step === undefined) return container;
      if (containerSteps[step].undo === outcome.kind) return undone(container, step, outcome);
      if (outcome.failure !== undefined) return { ...withStep(container, step, 'failed'), failure: outcome.failure };
      return {
        ...withStep(container, step, 'done'),
        rootfs: outcome.kind === 'PrepareContainer' ? (outcome.result?.rootfs ?? []) : container.rootfs,
      };
    }
  }
}

/** Nobody knows how this effect ended. */
export function cutShortContainer(container: Container, intent: Intent, failure: Failure): Container {
  switch (intent.kind) {
    case 'InspectContainer':
      return { ...container, inspection: 'failed', failure };
    case 'KillTask':
      return { ...container, kill: 'none' };
    case 'StartTask':
      return { ...container, startInDoubt: container.starting };
    case 'RunExec':
    case 'StreamExec': {
      const execs = container.execs.filter((id) => id !== intent.execId);
      return { ...container, execs, staleExecs: [...container.staleExecs, intent.execId] };
    }
    default: {
      const step = stepOf(intent.kind);
      return step === undefined ? container : { ...withStep(container, step, 'failed'), failure };
    }
  }
}

function undone(container: Container, step: ContainerStep, outcome: EffectEnded): Container {
  if (outcome.failure === undefined) return withStep(container, step, 'undone');
  return {
    ...withStep(container, step, 'owed'),
    owedFailure: outcome.failure,
    undoFailures: container.undoFailures + 1,
  };
}

const stepOf = (kind: string): ContainerStep | undefined =>
  CONTAINER_STEPS.find((name) => containerSteps[name].make === kind || containerSteps[name].undo === kind);

const withStep = (container: Container, step: ContainerStep, to: StepState): Container => ({
  ...container,
  steps: { ...container.steps, [step]: to },
});
