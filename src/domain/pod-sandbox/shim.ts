/**
 * The shim of a pod without a pause task. It is asked for once the pod's files are there, beside its network, so that
 * containers find it; with a container where that failed, and once more by a container that is to start and finds none. It
 * stays as long as the pod, and is replaced when it died (by older rules: it came with the first container and went with the
 * last). Its end is the containers' loss and not the pod's. A failed start is undone and told to the container that waits for
 * it, and so is a shim that can't be stopped: no start is tried again by itself.
 */
import { hasShim, prepareShim } from '../deciding/launch.ts';
import { failStart } from '../container/launch.ts';
import { openEffectsOn } from '../deciding/open-effects.ts';
import type { Failure } from '../model/errors.ts';
import { containerStream, sandboxStream } from '../model/records.ts';
import { mayHaveTask, waitsToStart } from '../model/container-state.ts';
import { rulesOf } from '../model/rules.ts';
import { containersOf, type Container, type PodSandbox } from '../model/state.ts';
import { afterMs, ensureTimer, request, retryDelayMs, type Turn, wake } from '../deciding/turn.ts';

/** Called for a pod that is being made: the pod is ready without it, and none the worse when it fails. */
export function startShimAhead(turn: Turn, sandbox: PodSandbox): void {
  if (rulesOf(turn.state) >= 6 && sandbox.steps.files === 'done') prepareShim(turn, sandbox);
}

/** Called for a pod that is to run and was ready once. */
export function advanceShim(turn: Turn, sandbox: PodSandbox): void {
  const { id, sandboxer, phase, steps, shimContact } = sandbox;
  if (sandboxer !== 'none' || phase !== 'ready') return;
  const containers = containersOf(turn.state, id);
  switch (steps.shim) {
    case undefined:
    case 'undone':
      if (containers.some(waitsToStart)) prepareShim(turn, sandbox);
      return;
    case 'failed':
      return request(turn, sandboxStream(id), { kind: 'StopShim' });
    case 'done': {
      const idle = rulesOf(turn.state) < 6 && containers.length === 0 && shimContact !== 'unknown';
      const tasksGone = !containers.some(mayHaveTask);
      if ((idle || shimContact === 'gone') && tasksGone && !isAsked(turn, id))
        request(turn, sandboxStream(id), { kind: 'StopShim' });
      return;
    }
    case 'owed': {
      if (rulesOf(turn.state) >= 3) failStartsBehind(turn, sandbox, containers);
      ensureTimer(turn, sandboxStream(id), 'retry', afterMs(turn, retryDelayMs(sandbox.undoFailures)));
      return;
    }
    case 'doing':
    case 'undoing':
      return;
  }
}

/** A shim that can't be stopped can't be replaced: nobody waits for that, whoever stops it and whenever. */
function failStartsBehind(turn: Turn, { id, owedFailure }: PodSandbox, containers: readonly Container[]): void {
  const why = owedFailure === null ? 'it is tried again' : owedFailure.message;
  const message = `The shim of pod sandbox ${id} ended and could not be cleared up, so that no other can be started: ${why}`;
  for (const container of containers.filter(waitsToStart)) failStart(turn, container.id, message, 'ShimFailed');
}

/** Its answer could otherwise be taken for that of the shim that comes after. */
const isAsked = (turn: Turn, podSandboxId: string): boolean =>
  openEffectsOn(turn.state, sandboxStream(podSandboxId)).some(({ intent }) => intent.kind === 'ReconnectShim');

/** Those who waited for the shim start now, or hear why they cannot. */
export function afterStartShim(turn: Turn, podSandboxId: string, failure: Failure | undefined): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined || sandbox.sandboxer !== 'none') return;
  for (const container of containersOf(turn.state, podSandboxId).filter(waitsToStart)) {
    if (failure !== undefined) failStart(turn, container.id, failure.message, failure.reason);
    else if (hasShim(sandbox)) wake(turn, containerStream(container.id));
  }
  if (failure !== undefined || rulesOf(turn.state) < 6) return;
  for (const container of containersOf(turn.state, podSandboxId)) wake(turn, containerStream(container.id));
}
