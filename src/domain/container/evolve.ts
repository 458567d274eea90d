/** What a record of its stream changes in a container. */
import type { ContainerFacts } from '../model/container-facts.ts';
import type { ContainerUpdate } from '../model/effects/container.ts';
import type { Failure, FailureReason } from '../model/errors.ts';
import type { PluginHook } from '../model/nri-plugins.ts';
import type { EffectEnded, Intent, Sequenced } from '../model/records.ts';
import { chainIdsOf } from '../image/mounted.ts';
import type { Container, ContainerExit, MountedImage, NodeState } from '../model/state.ts';
import { NOBODY } from '../nri/claims.ts';
import { adjustmentAfterUpdate } from '../nri/updates.ts';
import { isDecisive, restartedHooks, withAnswers, withHook } from '../nri/told.ts';
import { interrupted, triedAgain } from '../deciding/step-states.ts';
import { rulesOf } from '../model/rules.ts';
import { isUnanswered } from './contact.ts';
import * as phases from './phases.ts';

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
  const changed = leftOverBy(state, container, record, ended) ?? changedBy(container, record, ended);
  if (changed !== container) state.containers.set(id, changed);
}

/** A command of which nobody said how it ended may run: as one of an earlier life it stays known until it was ended. */
function leftOverBy(
  state: NodeState,
  container: Container,
  { type, body }: Sequenced,
  intent: Intent | undefined,
): Container | null {
  if (type !== 'effect.ended' || (intent?.kind !== 'RunExec' && intent?.kind !== 'StreamExec')) return null;
  const { failure } = body;
  if (failure === undefined || !isUnanswered(failure) || rulesOf(state) < 6) return null;
  return cutShortContainer(container, intent, failure);
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
    goal: 'run',
    phase: phases.CREATING,
    files: 'none',
    facts: null,
    rootfs: [],
    failure: null,
    owedFailure: null,
    undoFailures: 0,
  };
}

function changedBy(container: Container, record: Sequenced, intent: Intent | undefined): Container {
  const { phase } = container;
  switch (record.type) {
    case 'effects.requested':
      return record.body.effects.reduce(begun, container);
    case 'effect.ended':
      return ended(container, record.body, intent);
    case 'container.adjusted': {
      const { resources, ...adjusted } = record.body;
      const nri = { hooks: {}, ...container.nri, adjusted };
      return { ...container, ...(resources === undefined ? {} : { resources }), nri };
    }
    case 'container.created':
      return { ...container, goal: 'run', phase: phases.created(phase, record.body.claimed) };
    case 'container.claimed':
      return { ...container, phase: phases.claimed(phase) };
    case 'container.failed':
      return { ...container, goal: 'undo', failure: record.body.failure };
    case 'container.starting':
      return { ...container, phase: phases.starting(phase) };
    case 'container.started': {
      const { pid, startTicks } = record.body;
      return { ...container, phase: phases.started(phase, { pid, startTicks }, String(record.atNs)) };
    }
    case 'container.stopping':
      return { ...container, phase: phases.stopping(phase, record.body) };
    case 'container.exited': {
      const { exitStatus, exitedAtNs, reason, message } = record.body;
      return { ...container, phase: phases.exited(phase, { exitStatus, finishedAtNs: exitedAtNs, reason, message }) };
    }
    case 'container.updated':
      return updated(container, record.body);
    case 'container.lost': {
      const { message, reason } = record.body;
      const failure = reason === undefined ? container.failure : { reason, message };
      return { ...container, phase: phases.lost(phase, message), failure };
    }
    case 'container.removing':
      return { ...container, goal: 'remove' };
    case 'undo.retried':
      return {
        ...container,
        owedFailure: null,
        files: triedAgain(container.files),
        phase: phases.deletedAgain(phase),
      };
    case 'task.exited':
      return { ...container, phase: phases.exitSeen(phase, record.body.exit) };
    case 'task.oomed':
      return { ...container, phase: phases.oomed(phase) };
    default:
      return container;
  }
}

/** Refused as a whole, with the limits from before in force; any other failure leaves in doubt which ones are. */
const REFUSALS: readonly FailureReason[] = ['RuntimeFailed', 'HostLacks', 'InvalidField', 'Bug'];

export const isSettled = (failure: Failure | undefined): boolean =>
  failure === undefined || REFUSALS.includes(failure.reason);

/** Nothing is being changed about its limits any more. */
const withoutUpdate = ({ update: _update, ...container }: Container): Container => container;

const withoutCheckpoint = ({ checkpoint: _checkpoint, ...container }: Container): Container => container;

/** What plugins set and the limits name is in the limits from now on; the rest stays. */
function updated(container: Container, { resources, beyond }: ContainerUpdate): Container {
  const changed = { ...withoutUpdate(container), resources };
  const { nri } = container;
  if (nri?.adjusted === undefined && beyond === undefined) return changed;
  const adjusted = nri?.adjusted ?? { adjust: {}, owners: NOBODY };
  const adjust = adjustmentAfterUpdate(adjusted.adjust, resources, beyond);
  return { ...changed, nri: { ...nri, hooks: nri?.hooks ?? {}, adjusted: { ...adjusted, adjust } } };
}

/** An effect on it is requested. */
function begun(container: Container, intent: Intent): Container {
  const { phase } = container;
  switch (intent.kind) {
    case 'InspectContainer':
      return { ...container, phase: phases.inspected(phase, 'doing') };
    case 'PrepareContainer':
      return { ...container, files: 'doing' };
    case 'CleanContainer':
      return { ...container, files: 'undoing' };
    case 'CreateTask':
      return { ...container, phase: phases.making(phase) };
    case 'StartTask':
      return { ...container, phase: phases.launched(phase, 'doing') };
    case 'DeleteTask':
      return { ...container, phase: phases.withTaskLeft(phase, 'undoing') };
    case 'KillTask':
      return { ...container, phase: phases.killed(phase, 'sent', intent.signal) };
    case 'UpdateContainer': {
      const { kind: _kind, ...update } = intent;
      return { ...container, update };
    }
    case 'CheckpointTask':
      return { ...container, checkpoint: intent.location };
    case 'CallPlugins':
      return withHook(container, intent.hook, 'doing');
    case 'RunExec':
    case 'StreamExec':
      return {
        ...container,
        phase: phases.withRun(phase, (run) => ({ ...run, execs: [...run.execs, intent.execId] })),
      };
    default:
      return container;
  }
}

function ended(container: Container, outcome: EffectEnded, intent: Intent | undefined): Container {
  const { phase } = container;
  switch (outcome.kind) {
    case 'InspectContainer':
      return outcome.result === undefined
        ? { ...container, phase: phases.inspected(phase, 'failed'), failure: outcome.failure ?? null }
        : { ...withFacts(container, outcome.result.facts), phase: phases.inspected(phase, 'done') };
    case 'PrepareContainer':
      return outcome.failure === undefined
        ? { ...container, files: 'done', rootfs: outcome.result?.rootfs ?? [] }
        : { ...container, files: 'failed', failure: outcome.failure };
    case 'CleanContainer':
      return outcome.failure === undefined
        ? { ...container, files: 'undone' }
        : { ...owing(container, outcome.failure), files: 'owed' };
    case 'CreateTask':
      if (phase.kind === 'created') return madeAhead(container, outcome);
      return phase.kind === 'starting' && phase.launch === 'making' ? madeTask(container, outcome) : container;
    case 'StartTask':
      // Of one that succeeded container.started says the rest.
      return outcome.failure === undefined
        ? container
        : { ...container, phase: phases.launched(phase, 'failed'), failure: outcome.failure };
    case 'DeleteTask':
      if (outcome.failure !== undefined && phase.kind === 'starting')
        return { ...container, phase: phases.withTaskLeft(phase, 'owed'), failure: outcome.failure };
      return outcome.failure === undefined
        ? { ...container, phase: phases.withTaskLeft(phase, 'undone') }
        : { ...owing(container, outcome.failure), phase: phases.withTaskLeft(phase, 'owed') };
    case 'KillTask':
      return { ...container, phase: phases.killed(phase, outcome.failure !== undefined ? 'futile' : 'done') };
    case 'RunExec':
    case 'StreamExec':
      return intent?.kind === outcome.kind ? withoutExec(container, 'execs', intent.execId) : container;
    case 'EndExec':
      return intent?.kind === 'EndExec' && outcome.failure === undefined
        ? withoutExec(container, 'staleExecs', intent.execId)
        : container;
    case 'UpdateContainer':
      return isSettled(outcome.failure) ? withoutUpdate(container) : container;
    case 'CallPlugins':
      return intent?.kind === 'CallPlugins' ? asked(container, intent.hook, outcome.failure) : container;
    case 'CheckpointTask':
      return withoutCheckpoint(container);
    case 'EndCheckpoint':
      return outcome.failure === undefined ? withoutCheckpoint(container) : container;
    default:
      return container;
  }
}

/** Once plugins have changed it, only the names that they brought in are looked up. */
const withFacts = (container: Container, facts: ContainerFacts): Container =>
  container.nri?.adjusted === undefined || container.facts === null
    ? { ...container, facts }
    : { ...container, nri: { ...container.nri, facts } };

/** Why it could not be made is told by the start that makes another, where that fails too. */
const madeAhead = (container: Container, { result }: Extract<EffectEnded, { kind: 'CreateTask' }>): Container => ({
  ...container,
  phase:
    result === undefined ? phases.withTaskLeft(container.phase, 'failed') : phases.made(container.phase, result.task),
});

const madeTask = (
  container: Container,
  { result, failure }: Extract<EffectEnded, { kind: 'CreateTask' }>,
): Container =>
  result === undefined
    ? { ...container, phase: phases.launched(container.phase, 'failed'), failure: failure ?? null }
    : { ...container, phase: phases.made(container.phase, result.task) };

const asked = (container: Container, hook: PluginHook, failure: Failure | undefined): Container => ({
  ...withAnswers(container, hook, failure),
  ...(failure !== undefined && isDecisive(hook) ? { failure } : {}),
});

const owing = (container: Container, failure: Failure): Container => ({
  ...container,
  owedFailure: failure,
  undoFailures: container.undoFailures + 1,
});

const withoutExec = (container: Container, list: 'execs' | 'staleExecs', execId: string): Container => ({
  ...container,
  phase: phases.withRun(container.phase, (run) => ({ ...run, [list]: run[list].filter((id) => id !== execId) })),
});

/** Nobody knows how this effect ended. */
export function cutShortContainer(container: Container, intent: Intent, failure: Failure): Container {
  const { phase } = container;
  switch (intent.kind) {
    case 'InspectContainer':
      return { ...container, phase: phases.inspected(phase, 'failed'), failure };
    case 'PrepareContainer':
    case 'CleanContainer':
      return { ...container, files: 'failed', failure };
    case 'CallPlugins':
      return asked(container, intent.hook, failure);
    case 'CreateTask':
      if (phase.kind === 'created') return { ...container, phase: phases.withTaskLeft(phase, 'failed') };
      return phase.kind === 'starting' && phase.launch === 'making'
        ? { ...container, phase: phases.launched(phase, 'inDoubt') }
        : container;
    case 'StartTask':
      return { ...container, phase: phases.launched(phase, 'inDoubt') };
    case 'DeleteTask':
      return { ...container, phase: phases.withTaskLeft(phase, 'failed'), failure };
    case 'KillTask':
      return { ...container, phase: phases.killed(phase, 'none') };
    case 'RunExec':
    case 'StreamExec': {
      const { execId } = intent;
      const cut = withoutExec(container, 'execs', execId);
      const owed = phases.withRun(cut.phase, (run) => ({ ...run, staleExecs: [...run.staleExecs, execId] }));
      return { ...cut, phase: owed };
    }
    default:
      return container;
  }
}

/** A daemon has started, perhaps after the node's end, which `exit` is of whatever ran: limits and bundles ended then too. */
export const restartedContainer = (container: Container, exit: ContainerExit | null, dead: boolean): Container => ({
  ...restartedHooks(exit === null ? container : withoutUpdate(container)),
  files: interrupted(container.files),
  phase: phases.restarted(container.phase, exit, dead),
});
