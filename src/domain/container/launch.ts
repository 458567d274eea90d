/**
 * How a container's task comes to run once its start was asked for: what was made ahead is started, anything else made first.
 * What a failed start leads to is advance.ts's.
 *
 *   none ──────────────────────> doing ──> (running)         both asked for by one record
 *   making ──> made ──> (hook) ────^                         made ahead, or for plugins that want to know its process
 *   stale ──> clearing ──> none                              what was made ahead is no good
 */
import { hasShim, launchIntents } from '../deciding/launch.ts';
import { answer, callsWaitingFor, onBehalfOf, request, type Turn, wake } from '../deciding/turn.ts';
import { isStarting } from '../model/container-state.ts';
import type { Failure } from '../model/errors.ts';
import { containerStream, sandboxStream } from '../model/records.ts';
import { refused } from '../model/result.ts';
import { rulesOf } from '../model/rules.ts';
import type { Container, ContainerLaunch } from '../model/state.ts';
import { pluginsFor } from '../nri/plugins.ts';
import { isAskingShim } from './contact.ts';
import { askHookOnce } from './hooks.ts';
import { writeStartError } from './starts-and-exits.ts';

/** Where its start stands at `launch`. */
export function advanceLaunch(turn: Turn, container: Container, launch: Exclude<ContainerLaunch, 'failed'>): void {
  const stream = containerStream(container.id);
  // What was made ahead was so for who created it; from here on it is for who starts it.
  const starting =
    rulesOf(turn.state) < 6 ? turn : onBehalfOf(turn, callsWaitingFor(turn, stream, ['StartContainer'])[0]);
  switch (launch) {
    case 'none':
      return advanceStart(starting, container);
    case 'stale':
      return isAskingShim(turn.state, container) ? undefined : request(turn, stream, { kind: 'DeleteTask' });
    case 'making':
      return followTaskAhead(starting, container);
    case 'made':
      return advanceMade(starting, container);
    case 'clearing':
    case 'doing':
    case 'inDoubt':
      return;
  }
}

/** It is being made: StartTask follows that, where no plugin has to know its process first. */
function followTaskAhead(turn: Turn, container: Container): void {
  if (rulesOf(turn.state) < 6 || pluginsFor(turn.state, 'StartContainer').length > 0) return;
  request(turn, containerStream(container.id), { kind: 'StartTask' });
}

function advanceStart(turn: Turn, container: Container): void {
  const sandbox = turn.state.sandboxes.get(container.podSandboxId);
  if (sandbox?.sandboxer === 'none') {
    if (sandbox.goal !== 'run' || sandbox.phase !== 'ready')
      return failStart(turn, container.id, `Pod sandbox ${sandbox.id} is not READY any more.`);
    // The pod starts its shim for this container, and comes back to it.
    if (!hasShim(sandbox)) return wake(turn, sandboxStream(sandbox.id));
  }
  // A spec that is being changed is not to be read.
  if (container.update !== undefined || isAskingShim(turn.state, container)) return;
  const stream = containerStream(container.id);
  if (pluginsFor(turn.state, 'StartContainer').length > 0) return request(turn, stream, { kind: 'CreateTask' });
  request(turn, stream, ...launchIntents(turn.state));
}

/** Plugins know its process before it runs. */
function advanceMade(turn: Turn, container: Container): void {
  if (askHookOnce(turn, container, 'StartContainer')) return;
  request(turn, containerStream(container.id), { kind: 'StartTask' });
}

/** A start turns out not to have happened; nothing of its task is left. */
export function failStart(
  turn: Turn,
  containerId: string,
  message: string,
  reason: Failure['reason'] = 'RuntimeFailed',
): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || !isStarting(container)) return;
  writeStartError(turn, container, message);
  answer(turn, containerStream(containerId), ['StartContainer'], refused({ reason, message }));
  wake(turn, containerStream(containerId));
}
