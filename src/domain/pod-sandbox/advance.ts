/**
 * The process manager of a PodSandbox: looks at how far it is and asks for what comes next. It is called after
 * everything that may have moved it, asks for nothing twice, and waits for nothing.
 *
 * The steps, and what each waits for, are a table: steps.ts. A pod without a pause task is ready without a shim, which
 * is started beside (shim.ts).
 *
 * A pod that is restored from a checkpoint has its containers made before it is ready (restored-containers.ts).
 *
 * Undo goes on past failures; what failed is owed, is tried again, and keeps the sandbox visible (C6).
 */
import { removeContainerOf, stopContainerOf } from '../container/advance.ts';
import { isAcquired, isClear } from '../deciding/step-states.ts';
import { mayHaveTask } from '../model/container-state.ts';
import type { Failure } from '../model/errors.ts';
import { imageIdsOfPod } from '../image/mounted.ts';
import { awaitsPlugins } from '../deciding/awaited-plugins.ts';
import { askOnce } from '../deciding/hooks.ts';
import { askedTogether } from '../deciding/launch.ts';
import { isPodLeftAlone } from '../deciding/left-alone.ts';
import { startShimIntent } from '../deciding/shared-shim.ts';
import { pluginsFor } from '../nri/plugins.ts';
import { CREATIONS, failPod } from '../deciding/pod-failed.ts';
import { isPodAnnounced } from '../nri/told.ts';
import type { Intent } from '../model/records.ts';
import { imageStream, sandboxStream } from '../model/records.ts';
import { containersOf, type NodeState, type PodSandbox, type StepState } from '../model/state.ts';
import {
  afterMs,
  answer,
  callsWaitingFor,
  CLAIM_MS,
  emit,
  ensureTimer,
  OK,
  request,
  retryDelayMs,
  setTimer,
  type Turn,
  wake,
} from '../deciding/turn.ts';
import { rulesOf } from '../model/rules.ts';
import { refused, succeeded } from '../model/result.ts';
import { SIGKILL } from '../values/signals.ts';
import { advancePodCheckpoint } from './checkpoint.ts';
import { createdResponse, isRestored, restoreContainers, restoreFailure, showRestored } from './restored-containers.ts';
import { holderOf } from './sandboxer.ts';
import { advanceShim, startShimAhead } from './shim.ts';
import { stateOf, STOP_HOOK_AFTER_TRYING, type StepRow, stepsOf, stepsToUndo } from './steps.ts';

/** A killed pause task whose exit did not arrive by then: its shim is asked. */
const EXIT_OVERDUE_MS = 5_000;

export function advancePodSandbox(turn: Turn, podSandboxId: string): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined) return;
  advancePodCheckpoint(turn, sandbox);
  if (sandbox.goal === 'run') return advanceRun(turn, sandbox);
  advanceTeardown(turn, sandbox);
}

function advanceRun(turn: Turn, sandbox: PodSandbox): void {
  if (sandbox.phase !== 'creating') return advanceShim(turn, sandbox);
  if (isPodLeftAlone(turn, sandbox)) return;
  const stream = sandboxStream(sandbox.id);
  const failure = failureOf(turn.state, sandbox);
  if (failure !== null) {
    failPod(turn, sandbox.id, failure, 'notMade');
    return advancePodSandbox(turn, sandbox.id);
  }
  startShimAhead(turn, sandbox);
  const steps = stepsOf(sandbox);
  const rules = rulesOf(turn.state);
  const next = steps.filter((row) => mayBegin(sandbox, row, rules));
  if (next.length > 0) return request(turn, stream, ...next.flatMap((row) => makingOf(turn.state, sandbox, row)));
  if (!steps.every((row) => isMade(sandbox, row, rules))) return;
  if (sandbox.nri === undefined && awaitsPlugins(turn.state, sandbox.config.annotations, null)) return;
  if (askOnce(turn, stream, sandbox, 'RunPodSandbox')) return;
  if (!isRestored(turn.state, sandbox)) return restoreContainers(turn, sandbox);
  const target = stream;
  const claimed = callsWaitingFor(turn, target, CREATIONS).some((call) => !call.detached);
  emit(turn, stream, { type: 'sandbox.ready', body: { claimed } });
  showRestored(turn, sandbox, claimed);
  answer(turn, target, CREATIONS, succeeded(createdResponse(sandbox)));
  if (!claimed) setTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
  if (rules >= 6) wake(turn, stream);
}

const makingOf = (state: NodeState, sandbox: PodSandbox, { make }: StepRow): readonly Intent[] =>
  askedTogether(
    state,
    make.map(({ kind }) => (kind === 'StartShim' ? startShimIntent(state, sandbox) : { kind })),
  );

const isAnyStep = ({ steps }: PodSandbox, state: StepState): boolean =>
  Object.values(steps).some((step) => step === state);

/** A pod without a pause task is made without its shim, which may have been asked for ahead. */
const isAnyNeeded = ({ sandboxer, steps }: PodSandbox, state: StepState): boolean =>
  Object.entries(steps).some(([step, its]) => its === state && !(step === 'shim' && sandboxer === 'none'));

function failureOf(state: NodeState, sandbox: PodSandbox): Failure | null {
  if (sandbox.taskExit !== null)
    return {
      reason: 'RuntimeFailed',
      message: `Pod sandbox ${sandbox.id} was not ready yet when ${holderOf(sandbox.sandboxer) ?? 'it'} ended with status ${sandbox.taskExit.exitStatus}.`,
    };
  // By rules 5 to 8 a pod of which all was made went on where it had no shim yet, or a reboot had ended that.
  const isCutOff = sandbox.isCutOff === true || (sandbox.shimContact === 'mute' && rulesOf(state) >= 5);
  const isDoubtful = isCutOff || isAnyNeeded(sandbox, 'failed') || sandbox.nri?.hooks.RunPodSandbox === 'failed';
  if (!isDoubtful) return restoreFailure(state, sandbox) ?? shimFailure(state, sandbox);
  return (
    sandbox.failure ?? {
      reason: 'Interrupted',
      message: 'The daemon ended while the pod sandbox was being made; it was undone.',
    }
  );
}

function shimFailure(state: NodeState, { id, sandboxer, shimContact }: PodSandbox): Failure | null {
  if (shimContact !== 'gone' || sandboxer === 'none' || rulesOf(state) < 2) return null;
  return { reason: 'ShimFailed', message: `The shim of pod sandbox ${id} ended before the pod was ready.` };
}

/** Or the pod does without. */
const isMade = (sandbox: PodSandbox, { step, needed }: StepRow, rules: number): boolean =>
  !needed(sandbox, rules) || stateOf(sandbox, step) === 'done';

function mayBegin(sandbox: PodSandbox, { step, needed, after, follows }: StepRow, rules: number): boolean {
  if (!needed(sandbox, rules) || stateOf(sandbox, step) !== 'none') return false;
  const steps = stepsOf(sandbox);
  // What it follows is asked for by the same record, or was made long ago.
  const isFollowed = (row: StepRow): boolean => isMade(sandbox, row, rules) || mayBegin(sandbox, row, rules);
  return steps.every(
    (row) => (!after.includes(row.step) || isMade(sandbox, row, rules)) && (row.step !== follows || isFollowed(row)),
  );
}

function advanceTeardown(turn: Turn, sandbox: PodSandbox): void {
  // What is being made can't be unmade yet, and a shim that was not asked since the restart may still know more.
  if (isAnyStep(sandbox, 'doing') || sandbox.nri?.hooks.RunPodSandbox === 'doing') return;
  if (sandbox.shimContact === 'unknown' && sandbox.goal !== 'undo') return;
  if (sandbox.goal !== 'stop')
    for (const container of containersOf(turn.state, sandbox.id)) removeContainerOf(turn, container.id);
  else for (const container of containersOf(turn.state, sandbox.id)) stopContainerOf(turn, container.id);

  const now = turn.state.sandboxes.get(sandbox.id);
  if (now === undefined) return;
  const isHeldUp = askStopHookOnce(turn, now);
  const next = undoable(turn, now, isHeldUp);
  if (next.length > 0) {
    request(turn, sandboxStream(now.id), ...next);
    return;
  }
  if (!isHeldUp) finish(turn, now);
}

/** Tells NRI plugins of its stop, once what comes before is done. True until they have heard: the rest waits. */
function askStopHookOnce(turn: Turn, sandbox: PodSandbox): boolean {
  const { nri, id } = sandbox;
  // What was never announced need not be taken back.
  if (!isPodAnnounced(sandbox)) return false;
  if (nri?.hooks.StopPodSandbox === undefined && pluginsFor(turn.state, 'StopPodSandbox').length === 0) return false;
  const mayRun = containersOf(turn.state, id).some(mayHaveTask);
  if (mayRun || !STOP_HOOK_AFTER_TRYING.every((step) => isTried(stateOf(sandbox, step))))
    return nri?.hooks.StopPodSandbox === undefined;
  return askOnce(turn, sandboxStream(id), sandbox, 'StopPodSandbox');
}

/** What can be undone at this moment. */
function undoable(turn: Turn, sandbox: PodSandbox, isHeldUp: boolean): Intent[] {
  const containers = containersOf(turn.state, sandbox.id);
  if (containers.some(mayHaveTask)) return [];
  const keepsNothing = sandbox.goal !== 'stop' && containers.length === 0 && isClearButKept(sandbox);
  return stepsToUndo(sandbox)
    .filter((row) => !(isHeldUp && row.undoAfterHook === true))
    .filter((row) => (keepsNothing || row.isKept !== true) && mayUndo(sandbox, row))
    .flatMap((row) => undoingOf(sandbox, row));
}

const isTried = (state: StepState): boolean => isClear(state) || state === 'owed';

function mayUndo(sandbox: PodSandbox, { step, undoAfter, undoAfterTrying = [] }: StepRow): boolean {
  return (
    isAcquired(stateOf(sandbox, step)) &&
    undoAfter.every((before) => isClear(stateOf(sandbox, before))) &&
    undoAfterTrying.every((before) => isTried(stateOf(sandbox, before)))
  );
}

/** C3: the exit of the pause task is seen before Delete destroys its source, where a shim can still tell it. */
function undoingOf(sandbox: PodSandbox, { step, undo }: StepRow): readonly Intent[] {
  const { sandboxer, steps, taskExit, shimContact, kill } = sandbox;
  const exitIsDue =
    step === 'task' &&
    sandboxer === 'pause' &&
    steps.task === 'done' &&
    taskExit === null &&
    shimContact === 'connected' &&
    kill !== 'futile';
  if (!exitIsDue) return [{ kind: undo.kind }];
  return kill === 'none' ? [{ kind: 'KillTask', signal: SIGKILL, all: true }] : [];
}

/** Nothing is left but what a stopped pod keeps until it is removed. */
const isClearButKept = (sandbox: PodSandbox): boolean =>
  stepsOf(sandbox).every(({ step, isKept }) => isKept === true || isClear(stateOf(sandbox, step)));

const isAllClear = (sandbox: PodSandbox): boolean =>
  stepsOf(sandbox).every(({ step }) => isClear(stateOf(sandbox, step)));

const endedMeanwhile = (id: string, how: 'stopped' | 'removed'): Failure => ({
  reason: 'Cancelled',
  message: `Pod sandbox ${id} was ${how} while it was being made.`,
});

function finish(turn: Turn, sandbox: PodSandbox): void {
  const { id } = sandbox;
  const stream = sandboxStream(id);
  if (isClearButKept(sandbox)) {
    if (!sandbox.stopped && sandbox.goal !== 'undo') emit(turn, stream, { type: 'sandbox.stopped', body: {} });
    answer(turn, stream, ['StopPodSandbox'], OK);
    if (sandbox.goal !== 'stop' && isAllClear(sandbox) && containersOf(turn.state, id).length === 0) {
      if (isPodAnnounced(sandbox) && askOnce(turn, stream, sandbox, 'RemovePodSandbox')) return;
      emit(turn, stream, { type: 'sandbox.removed', body: {} });
      for (const imageId of imageIdsOfPod(sandbox)) wake(turn, imageStream(imageId));
      answer(turn, stream, ['RemovePodSandbox'], OK);
      answer(turn, stream, CREATIONS, refused(sandbox.failure ?? endedMeanwhile(id, 'removed')));
      return;
    }
    if (sandbox.goal === 'stop' && rulesOf(turn.state) >= 11)
      answer(turn, stream, CREATIONS, refused(sandbox.failure ?? endedMeanwhile(id, 'stopped')));
  }
  const undoing = isAnyStep(sandbox, 'undoing') || sandbox.kill === 'sent';
  if (undoing || sandbox.owedFailure === null || !isAnyStep(sandbox, 'owed')) return;
  // Everything that could be undone was; the rest is owed. Callers hear of it now, and it is tried again.
  const failure = sandbox.owedFailure;
  answer(turn, stream, ['StopPodSandbox', 'RemovePodSandbox'], refused(failure));
  answer(turn, stream, CREATIONS, refused(sandbox.failure ?? failure));
  ensureTimer(turn, stream, 'retry', afterMs(turn, retryDelayMs(sandbox.undoFailures)));
}

/**
 * The pod fell over by itself: what holds it or its shim ended. kubelet sees NOTREADY and stops it. Without either a pod
 * stands as long as its namespaces are pinned, shim or no shim.
 */
export function losePodSandbox(turn: Turn, podSandboxId: string, message: string): void {
  markLost(turn, podSandboxId, message);
  advancePodSandbox(turn, podSandboxId);
}

/** Only says so: what comes next is not looked at. */
export function markLost(turn: Turn, podSandboxId: string, message: string): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined) return;
  if (sandbox.goal === 'run' && sandbox.phase === 'ready' && holderOf(sandbox.sandboxer) !== null)
    emit(turn, sandboxStream(podSandboxId), { type: 'sandbox.lost', body: { message } });
}

/** Signalling the pause task ended: its exit follows, or its shim is asked. */
export function afterPauseKill(turn: Turn, podSandboxId: string): void {
  awaitPauseExit(turn, podSandboxId);
  advancePodSandbox(turn, podSandboxId);
}

/** Of a pause task that was killed: its shim is asked when its exit stays away. */
export function awaitPauseExit(turn: Turn, podSandboxId: string): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox?.kill === 'done' && sandbox.taskExit === null)
    ensureTimer(turn, sandboxStream(podSandboxId), 'exit', afterMs(turn, EXIT_OVERDUE_MS));
}
