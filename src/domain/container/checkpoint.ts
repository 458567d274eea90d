/** CheckpointContainer: one at a time, of a container that runs and goes on running. */
import { openEffectsOn } from '../effect-log.ts';
import type { Failure } from '../errors.ts';
import { checkAbsolutePath, checkNoParentPart, checkTimeout } from '../oci/checks.ts';
import { failureIn, refuseField } from '../oci/refuse.ts';
import { type CallRequest, containerStream, type EffectEnded } from '../records.ts';
import type { NodeState, OpenCall } from '../state.ts';
import { complete, emit, OK, type Turn } from '../turn.ts';
import { isAskingShim } from './contact.ts';
import { containerStateOf, notFound } from './state.ts';

type CheckpointRequest = Extract<CallRequest, { method: 'CheckpointContainer' }>;

/** An archive of it is being written now. */
export const isCheckpointing = (state: NodeState, containerId: string): boolean =>
  openEffectsOn(state, containerStream(containerId)).some(({ intent }) => intent.kind === 'CheckpointTask');

const wrongState = (message: string): Failure => ({ reason: 'WrongState', message });

function refusal(state: NodeState, { containerId, location, timeoutSeconds }: CheckpointRequest): Failure | null {
  const container = state.containers.get(containerId);
  if (container === undefined || !container.created) return notFound(containerId);
  const invalid = failureIn(() => {
    checkAbsolutePath('location', location);
    checkNoParentPart('location', location);
    if (location.endsWith('/')) refuseField('location', 'is a directory: name the file that is to be written');
    checkTimeout('timeout', timeoutSeconds);
  });
  if (invalid !== null) return invalid;
  const now = containerStateOf(container);
  if (now !== 'CONTAINER_RUNNING' || container.goal !== 'run')
    return wrongState(`Container ${containerId} is ${now ?? 'being removed'}; only a RUNNING one can be checkpointed.`);
  if (isCheckpointing(state, containerId)) return wrongState(`Container ${containerId} is being checkpointed already.`);
  if (isAskingShim(state, container))
    return { reason: 'NotServing', message: `The shim of container ${containerId} was not reached yet; try again.` };
  return null;
}

export function checkpointContainer(turn: Turn, call: OpenCall, request: CheckpointRequest): void {
  const failure = refusal(turn.state, request);
  if (failure !== null) return complete(turn, call, { ok: false, failure });
  const { containerId, location, timeoutSeconds } = request;
  const timeoutMs = timeoutSeconds === '0' ? null : Number(timeoutSeconds) * 1000;
  const effects = [{ kind: 'CheckpointTask', location, timeoutMs }] as const;
  emit(turn, containerStream(containerId), { type: 'effects.requested', body: { effects } }, call.seq);
}

export function afterCheckpoint(turn: Turn, { failure }: Extract<EffectEnded, { kind: 'CheckpointTask' }>): void {
  const call = turn.ended === null || turn.ended.call === null ? undefined : turn.state.calls.get(turn.ended.call);
  if (call === undefined) return;
  complete(turn, call, failure === undefined ? OK : { ok: false, failure });
}
