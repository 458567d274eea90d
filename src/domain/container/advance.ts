/**
 * The process manager of a container: looks at how far it is and asks for what comes next.
 *
 *   create:  inspection ──> files ──> created     (NRI plugins are asked before, validators beside the files)
 *   start:   task ──> started        (StartError when the task could not be started)
 *   stop:    signal ──(grace)──> SIGKILL ──> exit
 *   exit:    exited is durable ──> the task is deleted (C3)
 *   remove, undo: stop ──> task deleted ──> files ──> gone
 */
import { CREATIONS, failPod } from '../deciding/pod-failed.ts';
import { hasTimer } from '../deciding/open-effects.ts';
import type { LaunchedTask, TaskExit } from '../model/tasks.ts';
import { rulesOf } from '../model/rules.ts';
import type { Failure } from '../model/errors.ts';
import { imageIdsOf } from '../image/mounted.ts';
import { containerStream, type Eviction, imageStream, sandboxStream } from '../model/records.ts';
import type { Int64 } from '../model/cri.ts';
import type { Container, ContainerPhase, ContainerRun, StepState } from '../model/state.ts';
import { askPlugins } from '../deciding/hooks.ts';
import { isContainerLeftAlone } from '../deciding/left-alone.ts';
import {
  afterMs,
  answer,
  CLAIM_MS,
  callsWaitingFor,
  emit,
  ensureTimer,
  OK,
  request,
  retryDelayMs,
  setTimer,
  type Turn,
  wake,
} from '../deciding/turn.ts';
import { SIGKILL } from '../values/signals.ts';
import { intentAhead } from './ahead.ts';
import { advanceCheckpoint, isInCheckpoint } from './checkpoint.ts';
import { askShimForExit, contactOf, isAskingShim, isUnanswered } from './contact.ts';
import { refuseExecsOfRemoved } from './exec.ts';
import {
  askHookOnce,
  hasLostPlugins,
  isAnnounced,
  isAskedOfPlugins,
  isBeingCreatedByPlugins,
  isBeingValidated,
} from './hooks.ts';
import { newSpecOf } from '../nri/spec.ts';
import {
  isRunning,
  isStartInDoubt,
  isStarting,
  mayHaveTask,
  removedMeanwhile,
  stopOf,
  taskAheadOf,
  taskStepOf,
  waitsToStart,
} from '../model/container-state.ts';
import { refused, succeeded } from '../model/result.ts';
import { advanceLaunch, failStart } from './launch.ts';
import { advanceUpdates, isUpdating } from './update.ts';
import {
  askForValidation,
  inspectionIntents,
  isHeldByValidators,
  NOTHING_SAID,
  rejectionByDefault,
  waitsForPlugins,
} from './validation.ts';
import { writeExit, writeStart, writeStartError, writeUnknownEnd } from './starts-and-exits.ts';

/** A killed task whose exit did not arrive by then: its shim is asked. */
export const EXIT_OVERDUE_MS = 10_000;
const GONE_EXIT_OVERDUE_MS = 1_000;
/** A signal failed: its shim is asked by then how the task does. */
const UNSIGNALLED_LOOK_MS = 120_000;

type PhaseOf<K extends ContainerPhase['kind']> = Extract<ContainerPhase, { kind: K }>;

const find = (turn: Turn, id: string): Container | undefined => turn.state.containers.get(id);

export function advanceContainer(turn: Turn, containerId: string): void {
  const container = find(turn, containerId);
  if (container === undefined) return;
  advanceCheckpoint(turn, container);
  advanceGoal(turn, container);
  advanceUpdates(turn, containerId);
}

function advanceGoal(turn: Turn, container: Container): void {
  if (container.goal !== 'run') return advanceTeardown(turn, container);
  if (container.phase.kind === 'creating') {
    if (!isContainerLeftAlone(turn, container)) advanceCreate(turn, container, container.phase.inspection);
    return;
  }
  advanceTask(turn, container);
}

function advanceCreate(turn: Turn, container: Container, inspection: StepState): void {
  const stream = containerStream(container.id);
  const { files } = container;
  if (inspection === 'none') return request(turn, stream, ...inspectionIntents(turn.state, container));
  if (inspection === 'failed' || files === 'failed' || hasLostPlugins(container)) {
    const failure: Failure = container.failure ?? {
      reason: 'Interrupted',
      message: `The daemon ended while container ${container.id} was being created; it was undone.`,
    };
    return failCreation(turn, container, failure);
  }
  if (inspection === 'done' && files === 'none') {
    if (isHeldByValidators(turn.state, container)) return;
    // The spec is tried now, so that what it can't be made of is a refusal and not a failed effect.
    const failure = specFailure(turn, container);
    if (failure !== null) return failCreation(turn, container, failure);
    if (waitsForPlugins(turn.state, container) || askHookOnce(turn, container, 'CreateContainer')) return;
    // Once more, since plugins may have gone after they had answered.
    const rejected = rejectionByDefault(turn.state, container, []);
    if (rejected !== null) return failCreation(turn, container, rejected);
    const isJudged = !isAskedOfPlugins(container) && askForValidation(turn, container, NOTHING_SAID);
    if (isJudged && rulesOf(turn.state) < 6) return;
    return request(turn, stream, { kind: 'PrepareContainer' });
  }
  if (files !== 'done' || isBeingValidated(container)) return;
  // Containers of a pod that is being restored are shown with the pod, or never.
  if (isOfNewPod(turn, container)) return wake(turn, sandboxStream(container.podSandboxId));
  const claimed = callsWaitingFor(turn, stream, ['CreateContainer']).some((call) => !call.detached);
  emit(turn, stream, { type: 'container.created', body: { claimed } });
  askPlugins(turn, stream, 'PostCreateContainer');
  answer(turn, stream, ['CreateContainer'], succeeded({ id: container.id }));
  if (!claimed) setTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
  if (rulesOf(turn.state) >= 6) wake(turn, stream);
}

const isOfNewPod = ({ state }: Turn, { podSandboxId }: Container): boolean => {
  const sandbox = state.sandboxes.get(podSandboxId);
  return sandbox?.phase === 'creating' && sandbox.goal === 'run';
};

export function failCreation(turn: Turn, container: Container, failure: Failure): void {
  const podStream = sandboxStream(container.podSandboxId);
  emit(turn, containerStream(container.id), { type: 'container.failed', body: { failure } });
  if (isOfNewPod(turn, container)) {
    failPod(turn, container.podSandboxId, failure, 'notMade');
    wake(turn, podStream);
  }
  advanceContainer(turn, container.id);
}

function specFailure({ state }: Turn, container: Container): Failure | null {
  if (state.facts === null)
    return { reason: 'NotServing', message: 'The daemon has not finished starting; try again.' };
  const built = newSpecOf(state, state.facts, container);
  return built.ok ? null : built.failure;
}

/** Everything about the task: starting it, ending it, and deleting it once its exit is written down. */
function advanceTask(turn: Turn, container: Container): void {
  const { phase, id } = container;
  switch (phase.kind) {
    case 'creating':
      return;
    case 'created':
      return advanceAhead(turn, container);
    case 'starting':
      if (phase.launch === 'failed') return giveUpStart(turn, container);
      // Whoever would have told whether it was started is gone, and the turn in which that came threw.
      if (isStartInDoubt(container) && contactOf(turn.state, container) === 'gone' && rulesOf(turn.state) >= 8)
        return loseContainer(turn, id, 'the shim that ran it is gone');
      return advanceLaunch(turn, container, phase.launch);
    case 'running':
    case 'dead':
      if (contactOf(turn.state, container) === 'gone') return loseContainer(turn, id, 'the shim that ran it is gone');
      return phase.kind === 'running' ? enforceStop(turn, container, phase.run) : undefined;
    case 'startLost':
    case 'lost':
    case 'exited':
      return advanceDeletion(turn, container, phase);
  }
}

/** Before anybody asks for its start. */
function advanceAhead(turn: Turn, container: Container): void {
  const stream = containerStream(container.id);
  const step = taskAheadOf(container)?.step;
  if (step === 'owed') return owe(turn, container);
  // Its pod may have waited for that.
  if (step === 'undone') return wake(turn, sandboxStream(container.podSandboxId));
  const intent = intentAhead(turn, container);
  if (intent !== null) request(turn, stream, intent);
}

function giveUpStart(turn: Turn, container: Container): void {
  const message = container.failure?.message ?? 'The daemon ended while the container was being started.';
  if (isUnanswered(container.failure) && rulesOf(turn.state) >= 3) {
    emit(turn, containerStream(container.id), { type: 'container.lost', body: { message } });
    return advanceContainer(turn, container.id);
  }
  writeStartError(turn, container, message);
  const failure = container.failure ?? { reason: 'Interrupted', message };
  answer(turn, containerStream(container.id), ['StartContainer'], refused(failure));
  advanceContainer(turn, container.id);
}

/** Of a task that is over or given up. How one ended that was given up can be told once nothing of it is left. */
function advanceDeletion(turn: Turn, container: Container, phase: PhaseOf<'startLost' | 'lost' | 'exited'>): void {
  switch (phase.taskLeft) {
    case 'none':
    case 'undoing':
      return;
    case 'owed':
      return owe(turn, container);
    case 'done':
    case 'failed':
      if (askHookOnce(turn, container, 'StopContainer')) return;
      if (phase.kind === 'exited') answer(turn, containerStream(container.id), ['StopContainer'], OK);
      if (!isAskingShim(turn.state, container)) request(turn, containerStream(container.id), { kind: 'DeleteTask' });
      return;
    case 'undone':
      return afterDeletion(turn, container, phase);
  }
}

function afterDeletion(turn: Turn, container: Container, phase: PhaseOf<'startLost' | 'lost' | 'exited'>): void {
  switch (phase.kind) {
    case 'startLost':
      if (rulesOf(turn.state) < 3) return failStart(turn, container.id, phase.message);
      return failStart(turn, container.id, phase.message, container.failure?.reason);
    case 'lost':
      writeUnknownEnd(turn, container, phase.message);
      return advanceContainer(turn, container.id);
    case 'exited':
      return wake(turn, sandboxStream(container.podSandboxId));
  }
}

/** Wants the container stopped by `killAtNs` (null: at once). An earlier deadline wins; the signal is sent once. */
export function askForStop(
  turn: Turn,
  container: Container,
  signal: number,
  killAtNs: Int64 | null,
  evicted?: Eviction,
): void {
  const stop = stopOf(container);
  const earlier =
    stop === null || (stop.killAtNs !== null && (killAtNs === null || BigInt(killAtNs) < BigInt(stop.killAtNs)));
  if (!earlier && stop.kill !== 'futile') return;
  const at = earlier ? killAtNs : stop.killAtNs;
  emit(turn, containerStream(container.id), {
    type: 'container.stopping',
    body: { signal, killAtNs: at, ...(evicted === undefined ? {} : { evicted }) },
  });
}

/** The timer of this very deadline has just fired: it is over, though the wall clock was set back meanwhile. */
const isTimeOver = ({ ended }: Turn, stream: string, killAtNs: Int64): boolean =>
  ended?.stream === stream &&
  ended.intent.kind === 'WaitUntil' &&
  ended.intent.purpose === 'grace' &&
  ended.intent.dueAtNs === killAtNs;

function enforceStop(turn: Turn, container: Container, { stop }: ContainerRun): void {
  if (stop === null || stop.kill === 'sent' || isAskingShim(turn.state, container)) return;
  const { kill, killSignal, killAtNs } = stop;
  const stream = containerStream(container.id);
  if (killAtNs === null || BigInt(killAtNs) <= turn.input.atNs || isTimeOver(turn, stream, killAtNs)) {
    if (kill === 'done' && killSignal === SIGKILL) return;
    return request(turn, stream, { kind: 'KillTask', signal: SIGKILL, all: true });
  }
  if (kill === 'none' || kill === 'futile')
    request(turn, stream, { kind: 'KillTask', signal: stop.signal, all: false });
  if (!hasTimer(turn.state, stream, 'grace', killAtNs)) setTimer(turn, stream, 'grace', killAtNs);
}

function advanceTeardown(turn: Turn, container: Container): void {
  const { phase, files, id } = container;
  const isInspected = phase.kind === 'creating' && phase.inspection === 'doing';
  if (isInspected || files === 'doing' || files === 'undoing' || isBeingCreatedByPlugins(container)) return;
  if (files === 'owed') return owe(turn, container);
  if (isRunning(container) || isStarting(container)) askForStop(turn, container, SIGKILL, null);
  // An unknown exit of a lost task is still to be written down when nothing of it is left.
  if (mayHaveTask(container) || phase.kind === 'lost' || phase.kind === 'startLost') {
    if (phase.kind === 'created' && askHookOnce(turn, container, 'StopContainer')) return;
    const now = find(turn, id);
    if (now !== undefined) advanceTask(turn, now);
    return cleanBehindTask(turn, id);
  }
  const stream = containerStream(id);
  // Its files are being written to.
  if (isUpdating(turn.state, id) || isInCheckpoint(turn.state, container)) return;
  if (isAnnounced(container) && askHookOnce(turn, container, 'StopContainer')) return;
  if (files === 'done' || files === 'failed') return request(turn, stream, { kind: 'CleanContainer' });
  if (isAnnounced(container) && askHookOnce(turn, container, 'RemoveContainer')) return;
  emit(turn, stream, { type: 'container.removed', body: {} });
  answer(turn, stream, ['RemoveContainer', 'StopContainer'], OK);
  const failure = container.failure ?? removedMeanwhile(id);
  answer(turn, stream, ['CreateContainer', 'StartContainer', 'ReopenContainerLog'], refused(failure));
  if (rulesOf(turn.state) >= 3) refuseExecsOfRemoved(turn, id);
  wake(turn, sandboxStream(container.podSandboxId));
  for (const imageId of imageIdsOf(container)) wake(turn, imageStream(imageId));
}

/** Its files go once its task is deleted: asked for meanwhile, a trip to the disk less. */
function cleanBehindTask(turn: Turn, containerId: string): void {
  const container = find(turn, containerId);
  if (container === undefined || taskStepOf(container) !== 'undoing' || rulesOf(turn.state) < 6) return;
  // How one ended of whose end nobody has told is written down once nothing of it is left.
  if (container.phase.kind !== 'exited' && container.phase.kind !== 'created') return;
  if (isUpdating(turn.state, containerId) || isInCheckpoint(turn.state, container)) return;
  const isKept = container.files === 'done' || container.files === 'failed';
  if (isKept) request(turn, containerStream(containerId), { kind: 'CleanContainer' });
}

/** An undo failed: whoever waits hears of it, and it is tried again later. */
function owe(turn: Turn, container: Container): void {
  const stream = containerStream(container.id);
  const failure = container.owedFailure ?? {
    reason: 'HostFailed',
    message: `Container ${container.id} could not be cleaned up.`,
  };
  answer(turn, stream, ['RemoveContainer'], refused(failure));
  answer(turn, stream, ['CreateContainer'], refused(container.failure ?? failure));
  if (rulesOf(turn.state) >= 2) answer(turn, stream, ['StopContainer'], refused(failure));
  if (isStarting(container)) answer(turn, stream, ['StartContainer'], refused(failure));
  const podStream = sandboxStream(container.podSandboxId);
  answer(turn, podStream, ['StopPodSandbox', 'RemovePodSandbox'], refused(failure));
  const pod = turn.state.sandboxes.get(container.podSandboxId);
  // A pod that could not be restored goes after its containers.
  if (pod?.goal === 'undo' && rulesOf(turn.state) >= 6)
    answer(turn, podStream, CREATIONS, refused(pod.failure ?? failure));
  ensureTimer(turn, stream, 'retry', afterMs(turn, retryDelayMs(container.undoFailures)));
}

/** Stops a container because its pod is being stopped. */
export function stopContainerOf(turn: Turn, containerId: string): void {
  const container = find(turn, containerId);
  if (container?.phase.kind === 'created' && mayHaveTask(container)) wake(turn, containerStream(containerId));
  if (container === undefined || (!isRunning(container) && !isStarting(container))) return;
  const stop = stopOf(container);
  if (stop === null || stop.killAtNs !== null || stop.kill === 'futile') {
    askForStop(turn, container, SIGKILL, null);
    wake(turn, containerStream(containerId));
  } else if (waitsToStart(container) && rulesOf(turn.state) >= 3) {
    // It was told to stop before, and its pod starts no shim for it any more.
    wake(turn, containerStream(containerId));
  }
}

/** Removes a container because its pod is being removed. */
export function removeContainerOf(turn: Turn, containerId: string): void {
  const container = find(turn, containerId);
  if (container === undefined || container.goal === 'remove' || container.goal === 'undo') return;
  emit(turn, containerStream(containerId), { type: 'container.removing', body: {} });
  wake(turn, containerStream(containerId));
}

/** Writes down how a task ended. An exit that was already written down stays as it is. */
export function recordExit(turn: Turn, containerId: string, exit: TaskExit): void {
  if (writeExit(turn, containerId, exit)) advanceContainer(turn, containerId);
}

/** StartTask succeeded, or a shim was found to run the task: from here on it is RUNNING, or EXITED if it ended already. */
export function recordStart(turn: Turn, containerId: string, task: LaunchedTask): void {
  if (!writeStart(turn, containerId, task)) return;
  askPlugins(turn, containerStream(containerId), 'PostStartContainer');
  advanceContainer(turn, containerId);
}

/** Nobody can say any more how the task ends, or whether it was started: kill what is left of it, then say so. */
export function loseContainer(turn: Turn, containerId: string, message: string, reason?: Failure['reason']): void {
  const container = find(turn, containerId);
  const kind = container?.phase.kind;
  if (container?.phase.kind === 'created' && mayHaveTask(container)) return advanceContainer(turn, containerId);
  if (container === undefined || !(kind === 'running' || kind === 'dead' || isStartInDoubt(container))) return;
  const body = { message, ...(reason === undefined ? {} : { reason }) };
  emit(turn, containerStream(containerId), { type: 'container.lost', body });
  advanceContainer(turn, containerId);
}

/** A signal was delivered, or not. */
export function afterKill(turn: Turn, containerId: string, failure: Failure | undefined, alreadyGone: boolean): void {
  const container = find(turn, containerId);
  if (container === undefined || container.phase.kind === 'exited') return;
  const stream = containerStream(containerId);
  if (failure !== undefined) {
    answer(turn, stream, ['StopContainer', 'RemoveContainer'], refused(failure));
    answer(turn, sandboxStream(container.podSandboxId), ['StopPodSandbox', 'RemovePodSandbox'], refused(failure));
    // Whoever wants it gone will ask again; a removal that nobody repeats is repeated here.
    if (container.goal !== 'run') ensureTimer(turn, stream, 'retry', afterMs(turn, retryDelayMs(1)));
    if (isUnanswered(failure) && rulesOf(turn.state) >= 3) askShimForExit(turn, container.podSandboxId);
    // What can't be signalled may have ended untold. One that has not is signalled again, so seldom that it fills no journal.
    else if (rulesOf(turn.state) >= 12) ensureTimer(turn, stream, 'exit', afterMs(turn, UNSIGNALLED_LOOK_MS));
    return;
  }
  if (alreadyGone || stopOf(container)?.killSignal === SIGKILL)
    ensureTimer(turn, stream, 'exit', afterMs(turn, alreadyGone ? GONE_EXIT_OVERDUE_MS : EXIT_OVERDUE_MS));
  advanceContainer(turn, containerId);
}
