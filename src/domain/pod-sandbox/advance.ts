/**
 * The process manager of a PodSandbox: looks at how far it is and asks for what comes next. It is called after
 * everything that may have moved it, asks for nothing twice, and waits for nothing.
 *
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
 * Where the shim has a sandbox service of its own, its sandbox is the task: StartSandbox and StopSandbox make and undo it,
 * and one that does not stop ends with its shim.
 *
 * A pod without a pause task is ready without a shim, which comes and goes with its containers (shim.ts). Its network is
 * asked for together with the namespaces that it is attached to.
 *
 *   run:     files, namespaces, network ──> ready
 *   stop:    containers' tasks ──> shim, network ──> namespaces ──> stopped
 *
 * A pod that is restored from a checkpoint has its containers made before it is ready (restoring.ts).
 *
 * Undo goes on past failures; what failed is owed, is tried again, and keeps the sandbox visible (C6).
 */
import { removeContainerOf, stopContainerOf } from '../container/advance.ts';
import { hasTimer } from '../deciding/open-effects.ts';
import { isAcquired, isClear } from '../deciding/steps.ts';
import type { Failure } from '../model/errors.ts';
import { imageIdsOfPod } from '../image/mounted.ts';
import { launchIntents } from '../deciding/launch.ts';
import type { Intent } from '../model/records.ts';
import { imageStream, sandboxStream } from '../model/records.ts';
import { containersOf, type NodeState, type PodSandbox, type SandboxStep } from '../model/state.ts';
import {
  afterMs,
  answer,
  CLAIM_MS,
  callsWaitingFor,
  emit,
  type Method,
  OK,
  request,
  retryDelayMs,
  setTimer,
  type Turn,
  wake,
} from '../deciding/turn.ts';
import { rulesOf } from '../model/rules.ts';
import { SIGKILL } from '../values/signals.ts';
import { hasOwnUsers } from '../oci/user-namespace.ts';
import { advancePodCheckpoint } from './checkpoint.ts';
import { SANDBOX_STEPS } from './evolve.ts';
import { createdResponse, isRestored, restoreFailure, showRestored } from './restoring.ts';
import { hasNamespaces, holderOf, stepEffects } from './sandboxer.ts';
import { advanceShim } from './shim.ts';

/** Calls that make a pod. */
const CREATIONS = ['RunPodSandbox', 'RestorePod'] as const satisfies readonly Method[];

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
  const stream = sandboxStream(sandbox.id);
  const failure = failureOf(turn.state, sandbox);
  if (failure !== null) {
    emit(turn, stream, { type: 'sandbox.failed', body: { failure } });
    return advancePodSandbox(turn, sandbox.id);
  }
  const next = SANDBOX_STEPS.filter((step) => sandbox.steps[step] === 'none' && mayBegin(sandbox, step));
  if (next.length > 0) return request(turn, stream, ...next.flatMap((step) => makingOf(turn.state, sandbox, step)));
  if (!SANDBOX_STEPS.every((step) => isMade(sandbox, step)) || !isRestored(turn, sandbox)) return;
  const target = stream;
  const claimed = callsWaitingFor(turn, target, CREATIONS).some((call) => !call.detached);
  emit(turn, stream, { type: 'sandbox.ready', body: { claimed } });
  showRestored(turn, sandbox, claimed);
  answer(turn, target, CREATIONS, { ok: true, response: createdResponse(sandbox) });
  if (!claimed) setTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
}

function makingOf(state: NodeState, { sandboxer }: PodSandbox, step: SandboxStep): readonly Intent[] {
  const { make } = stepEffects(sandboxer, step);
  return make === 'StartTask' ? launchIntents(state) : [{ kind: make }];
}

function failureOf(state: NodeState, sandbox: PodSandbox): Failure | null {
  if (sandbox.taskExit !== null)
    return {
      reason: 'RuntimeFailed',
      message: `Pod sandbox ${sandbox.id} was not ready yet when ${holderOf(sandbox.sandboxer) ?? 'it'} ended with status ${sandbox.taskExit.exitStatus}.`,
    };
  if (!SANDBOX_STEPS.some((step) => sandbox.steps[step] === 'failed'))
    return restoreFailure(state, sandbox) ?? shimFailure(state, sandbox);
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

/** What has to be made before the pod is ready. */
function isNeeded({ network, sandboxer, config }: PodSandbox, step: SandboxStep): boolean {
  switch (step) {
    case 'files':
      return true;
    case 'network':
      return network !== null;
    case 'netns':
      return network !== null && sandboxer !== 'none';
    case 'namespaces':
      return sandboxer === 'none' && hasNamespaces(config);
    case 'shim':
    case 'task':
      return sandboxer !== 'none';
  }
}

const isMade = (sandbox: PodSandbox, step: SandboxStep): boolean =>
  !isNeeded(sandbox, step) || sandbox.steps[step] === 'done';

const taskMakesNetns = ({ config }: PodSandbox): boolean => hasOwnUsers(config);

function mayBegin(sandbox: PodSandbox, step: SandboxStep): boolean {
  if (!isNeeded(sandbox, step)) return false;
  switch (step) {
    case 'files':
    case 'namespaces':
      return true;
    case 'netns':
      return !taskMakesNetns(sandbox) || sandbox.steps.task === 'done';
    case 'network':
      // Pins are asked for in the same turn, and AttachNetwork waits for them: a trip to the disk less.
      return isMade(sandbox, 'netns');
    case 'shim':
      return sandbox.steps.files === 'done';
    case 'task':
      return sandbox.steps.shim === 'done' && (taskMakesNetns(sandbox) || isMade(sandbox, 'netns'));
  }
}

function advanceTeardown(turn: Turn, sandbox: PodSandbox): void {
  // What is being made can't be unmade yet, and a shim that was not asked since the restart may still know more.
  if (SANDBOX_STEPS.some((step) => sandbox.steps[step] === 'doing')) return;
  if (sandbox.shimContact === 'unknown' && sandbox.goal !== 'undo') return;
  if (sandbox.goal !== 'stop')
    for (const container of containersOf(turn.state, sandbox.id)) removeContainerOf(turn, container.id);
  else for (const container of containersOf(turn.state, sandbox.id)) stopContainerOf(turn, container.id);

  const now = turn.state.sandboxes.get(sandbox.id);
  if (now === undefined) return;
  const next = undoable(turn, now);
  if (next.length > 0) {
    request(turn, sandboxStream(now.id), ...next);
    return;
  }
  finish(turn, now);
}

/** What can be undone at this moment. */
function undoable(turn: Turn, sandbox: PodSandbox): Intent[] {
  const { steps } = sandbox;
  const containers = containersOf(turn.state, sandbox.id);
  const tasksGone = containers.every((container) => isClear(container.steps.task));
  const next: Intent[] = [];
  const undo = (step: SandboxStep): void => void next.push({ kind: stepEffects(sandbox.sandboxer, step).undo });

  if (tasksGone && isAcquired(steps.network)) undo('network');
  if (tasksGone && isAcquired(steps.task)) {
    // C3: the exit of the pause task is seen before Delete destroys its source, where a shim can still tell it.
    if (
      sandbox.sandboxer === 'pause' &&
      steps.task === 'done' &&
      sandbox.taskExit === null &&
      sandbox.shimContact === 'connected' &&
      sandbox.kill !== 'futile'
    ) {
      if (sandbox.kill === 'none') next.push({ kind: 'KillTask', signal: SIGKILL, all: true });
    } else undo('task');
  }
  if (isClear(steps.task) && tasksGone && isAcquired(steps.shim)) undo('shim');
  const networkTried = isClear(steps.network) || steps.network === 'owed';
  if (isClear(steps.task) && networkTried && isAcquired(steps.netns)) undo('netns');
  if (tasksGone && networkTried && isAcquired(steps.namespaces)) undo('namespaces');
  const restGone = HELD_STEPS.every((step) => isClear(steps[step]));
  if (sandbox.goal !== 'stop' && restGone && containers.length === 0 && isAcquired(steps.files)) undo('files');
  return next;
}

/** All but what a stopped pod keeps until it is removed. */
const HELD_STEPS = ['task', 'network', 'shim', 'netns', 'namespaces'] as const satisfies readonly SandboxStep[];

function finish(turn: Turn, sandbox: PodSandbox): void {
  const { steps, id } = sandbox;
  const stream = sandboxStream(id);
  const clear = (names: readonly SandboxStep[]): boolean => names.every((step) => isClear(steps[step]));
  if (clear(HELD_STEPS)) {
    if (!sandbox.stopped && sandbox.goal !== 'undo') emit(turn, stream, { type: 'sandbox.stopped', body: {} });
    answer(turn, stream, ['StopPodSandbox'], OK);
    if (sandbox.goal !== 'stop' && clear(['files']) && containersOf(turn.state, id).length === 0) {
      emit(turn, stream, { type: 'sandbox.removed', body: {} });
      for (const imageId of imageIdsOfPod(sandbox)) wake(turn, imageStream(imageId));
      answer(turn, stream, ['RemovePodSandbox'], OK);
      const failure = sandbox.failure ?? {
        reason: 'Cancelled',
        message: `Pod sandbox ${id} was removed while it was being made.`,
      };
      answer(turn, stream, CREATIONS, { ok: false, failure });
      return;
    }
  }
  const undoing = SANDBOX_STEPS.some((step) => steps[step] === 'undoing') || sandbox.kill === 'sent';
  if (undoing || sandbox.owedFailure === null || !SANDBOX_STEPS.some((step) => steps[step] === 'owed')) return;
  // Everything that could be undone was; the rest is owed. Callers hear of it now, and it is tried again.
  const failure = sandbox.owedFailure;
  answer(turn, stream, ['StopPodSandbox', 'RemovePodSandbox'], { ok: false, failure });
  answer(turn, stream, CREATIONS, { ok: false, failure: sandbox.failure ?? failure });
  if (!hasTimer(turn.state, stream, 'retry'))
    setTimer(turn, stream, 'retry', afterMs(turn, retryDelayMs(sandbox.undoFailures)));
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
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  const stream = sandboxStream(podSandboxId);
  if (
    sandbox !== undefined &&
    sandbox.kill === 'done' &&
    sandbox.taskExit === null &&
    !hasTimer(turn.state, stream, 'exit')
  )
    setTimer(turn, stream, 'exit', afterMs(turn, EXIT_OVERDUE_MS));
  advancePodSandbox(turn, podSandboxId);
}
