/**
 * The task of a container that nobody has started yet: made while whoever created it comes back to start it, so that the
 * start need not wait for all of it. A start takes it over as far as it is (phases.ts). What can't be kept, or is not wanted
 * as it is, is deleted, and the start makes another one, as it would have anyway: nobody hears of a task ahead that failed.
 *
 *   none ──> doing ──> done ──────────────> (started)
 *              └──> failed ─┬─> undoing ──> undone         the last for good: the start makes its own
 *                           └─────(owed)
 */
import { hasShim } from '../deciding/launch.ts';
import { callsWaitingFor, type Turn } from '../deciding/turn.ts';
import { evictedUnstarted, taskAheadOf } from '../model/container-state.ts';
import { NamespaceMode } from '../model/cri.ts';
import { containerStream, type Intent } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import type { Container, PodSandbox } from '../model/state.ts';
import { contactOf, isAskingShim } from './contact.ts';
import { isUpdating } from './update.ts';

/** What is asked for next; null: nothing. */
export function intentAhead(turn: Turn, container: Container): Intent | null {
  switch (taskAheadOf(container)?.step) {
    case undefined:
      return isWanted(turn, container) && canBeMade(turn, container) ? { kind: 'CreateTask' } : null;
    case 'done':
      return isWanted(turn, container) || isAskingShim(turn.state, container) ? null : { kind: 'DeleteTask' };
    case 'failed':
      return isAskingShim(turn.state, container) ? null : { kind: 'DeleteTask' };
    case 'doing':
    case 'undoing':
    case 'undone':
    case 'owed':
      return null;
  }
}

/** As it was made: limits that are changed now would have to reach it, and what it is to be is written into its spec. */
function isWanted(turn: Turn, container: Container): boolean {
  const { state } = turn;
  const sandbox = state.sandboxes.get(container.podSandboxId);
  if (evictedUnstarted(container) !== null) return false;
  const isChanged =
    container.update !== undefined ||
    isUpdating(state, container.id) ||
    callsWaitingFor(turn, containerStream(container.id), ['UpdateContainerResources']).length > 0;
  return container.goal === 'run' && sandbox?.goal === 'run' && contactOf(state, container) !== 'gone' && !isChanged;
}

/** Nobody is to wait for it who may never come, and nothing is joined that may be gone by the time of the start. */
function canBeMade({ state }: Turn, container: Container): boolean {
  const { phase, files, checkpointArchive, config, podSandboxId } = container;
  const sandbox = state.sandboxes.get(podSandboxId);
  const isClaimed = phase.kind === 'created' && phase.claimed;
  const joins = config.linux?.securityContext?.namespaceOptions?.pid === NamespaceMode.TARGET;
  return (
    rulesOf(state) >= 6 &&
    isClaimed &&
    files === 'done' &&
    checkpointArchive === undefined &&
    !joins &&
    sandbox !== undefined &&
    canLaunch(sandbox)
  );
}

/** What a shim with a sandbox of its own does with a task that nobody starts is its own business. */
const canLaunch = (sandbox: PodSandbox): boolean =>
  sandbox.sandboxer !== 'shim' && sandbox.phase === 'ready' && hasShim(sandbox) && sandbox.shimContact === 'connected';
