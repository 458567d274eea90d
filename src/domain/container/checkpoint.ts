/**
 * CheckpointContainer: one at a time, of a container that runs and goes on running. A checkpoint that a restart cut
 * short is cleared up at once: the container must not stay frozen, and nobody should find half an archive.
 */
import { hasTimer, openEffectsOn } from '../deciding/open-effects.ts';
import type { Failure } from '../model/errors.ts';
import { checkAbsolutePath, checkNoParentPart, checkTimeout } from '../oci/checks.ts';
import { failureIn, refuseField } from '../oci/refuse.ts';
import { type RequestOf, containerStream, type EffectEnded, NODE_STREAM, sandboxStream } from '../model/records.ts';
import type { Container, NodeState, OpenCall } from '../model/state.ts';
import {
  afterMs,
  callBehind,
  complete,
  emit,
  ensureTimer,
  OK,
  request as requestEffects,
  type Turn,
} from '../deciding/turn.ts';
import { isAskingShim } from './contact.ts';
import { containerStateOf, isCreated, notFound } from '../model/container-state.ts';
import { refused } from '../model/result.ts';

type CheckpointEnded = Extract<EffectEnded, { kind: 'CheckpointTask' | 'CheckpointPod' }>;
type CheckpointRequest = RequestOf<'CheckpointContainer'>;

const RETRY_MS = 5_000;

/** An archive of it is being written now, or taken away again. */
const isCheckpointing = (state: NodeState, containerId: string): boolean =>
  openEffectsOn(state, containerStream(containerId)).some(
    ({ intent }) => intent.kind === 'CheckpointTask' || intent.kind === 'EndCheckpoint',
  );

/** The same, or of its pod. */
export const isInCheckpoint = (state: NodeState, { id, podSandboxId }: Container): boolean =>
  isCheckpointing(state, id) ||
  openEffectsOn(state, sandboxStream(podSandboxId)).some(
    ({ intent }) =>
      (intent.kind === 'CheckpointPod' || intent.kind === 'EndPodCheckpoint') && intent.containerIds.includes(id),
  );

const wrongState = (message: string): Failure => ({ reason: 'WrongState', message });

/** Why no checkpoint of it can be made now, alone or with its pod. */
export function checkpointFailure(state: NodeState, container: Container): Failure | null {
  const { id } = container;
  const now = containerStateOf(container);
  if (now !== 'CONTAINER_RUNNING' || container.goal !== 'run')
    return wrongState(`Container ${id} is ${now ?? 'being removed'}; only a RUNNING one can be checkpointed.`);
  const ofPod = state.sandboxes.get(container.podSandboxId)?.checkpoint;
  if (container.checkpoint !== undefined || ofPod?.containerIds.includes(id) === true)
    return wrongState(`Container ${id} is being checkpointed already.`);
  if (isAskingShim(state, container))
    return { reason: 'NotServing', message: `The shim of container ${id} was not reached yet; try again.` };
  return null;
}

function refusal(state: NodeState, { containerId, location, timeoutSeconds }: CheckpointRequest): Failure | null {
  const container = state.containers.get(containerId);
  if (container === undefined || !isCreated(container)) return notFound(containerId);
  const invalid = failureIn(() => {
    checkAbsolutePath('location', location);
    checkNoParentPart('location', location);
    if (location.endsWith('/')) refuseField('location', 'is a directory: name the file that is to be written');
    checkTimeout('timeout', timeoutSeconds);
  });
  if (invalid !== null) return invalid;
  return checkpointFailure(state, container);
}

export function checkpointContainer(turn: Turn, call: OpenCall, request: CheckpointRequest): void {
  const failure = refusal(turn.state, request);
  if (failure !== null) return complete(turn, call, refused(failure));
  const { containerId, location, timeoutSeconds } = request;
  const timeoutMs = timeoutSeconds === '0' ? null : Number(timeoutSeconds) * 1000;
  const effects = [{ kind: 'CheckpointTask', location, timeoutMs }] as const;
  emit(turn, containerStream(containerId), { type: 'effects.requested', body: { effects } }, call.seq);
}

/** Whoever asked for it hears how it ended. What was written outlives the records of the container and of the call. */
export function afterCheckpoint(turn: Turn, { failure, result }: CheckpointEnded): void {
  if (result?.digests !== undefined)
    emit(turn, NODE_STREAM, { type: 'checkpoint.written', body: { digests: result.digests } }, null);
  const call = callBehind(turn);
  if (call === undefined) return;
  complete(turn, call, failure === undefined ? OK : refused(failure));
}

/** Clears up after a checkpoint that a restart cut short. */
export function advanceCheckpoint(turn: Turn, { id, checkpoint }: Container): void {
  const stream = containerStream(id);
  if (checkpoint === undefined || isCheckpointing(turn.state, id) || hasTimer(turn.state, stream, 'retry')) return;
  requestEffects(turn, stream, { kind: 'EndCheckpoint', location: checkpoint });
}

/** A container that stays frozen is of no use to anybody, so that it is tried until it has gone. */
export function afterEndCheckpoint(turn: Turn, containerId: string, failure: Failure | undefined): void {
  if (failure !== undefined) ensureTimer(turn, containerStream(containerId), 'retry', afterMs(turn, RETRY_MS));
}
