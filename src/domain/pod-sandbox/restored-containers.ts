/**
 * The containers of a pod that is being restored: asked for when the pod could be READY, and shown with it, all at once,
 * when each of them is made. One that can't be made fails the pod, and the pod's undo takes the rest (C6).
 */
import { advanceContainer } from '../container/advance.ts';
import { isClaimed } from '../model/container-state.ts';
import type { Failure } from '../model/errors.ts';
import { containerName } from '../model/names.ts';
import { type CallResponse, containerStream, sandboxStream } from '../model/records.ts';
import { containersOf, type NodeState, type PodSandbox } from '../model/state.ts';
import { emit, type Turn } from '../deciding/turn.ts';
import { prepareShim } from '../deciding/launch.ts';

/** What the creation of a pod is answered with. */
export function createdResponse({ id, restore }: PodSandbox): CallResponse {
  if (restore === undefined) return { id };
  const named = restore.containers.map(({ containerId, config }) => [config.metadata?.name ?? '', containerId]);
  return { id, containerIds: Object.fromEntries(named) as Record<string, string> };
}

/** Why what was restored so far is of no use. */
export function restoreFailure(state: NodeState, { id, restore, shimContact, sandboxer }: PodSandbox): Failure | null {
  if (restore === undefined || !restore.begun) return null;
  if (shimContact === 'gone' && sandboxer !== 'none')
    return { reason: 'ShimFailed', message: `The shim of pod sandbox ${id} ended before the pod was restored.` };
  const lost = restore.containers.find(({ containerId }) => !state.containers.has(containerId));
  if (lost === undefined) return null;
  const message = `Container ${lost.containerId} was removed before pod sandbox ${id} was restored.`;
  return { reason: 'Cancelled', message };
}

/** The containers are made too. */
export const isRestored = (state: NodeState, { restore }: PodSandbox): boolean =>
  restore === undefined ||
  (restore.begun && restore.containers.every(({ containerId }) => state.containers.get(containerId)?.files === 'done'));

/** Asks for the containers, once. */
export function restoreContainers(turn: Turn, { id: podSandboxId, restore }: PodSandbox): void {
  if (restore === undefined || restore.begun) return;
  emit(turn, sandboxStream(podSandboxId), { type: 'sandbox.restoring', body: {} });
  for (const { containerId, config, ...rest } of restore.containers) {
    const name = containerName(config.metadata ?? {}, podSandboxId);
    const body = { name, podSandboxId, config, ...rest };
    emit(turn, containerStream(containerId), { type: 'container.requested', body });
  }
  for (const { containerId } of restore.containers) advanceContainer(turn, containerId);
}

/** Shows the containers of a pod that has just become READY. */
export function showRestored(turn: Turn, sandbox: PodSandbox, claimed: boolean): void {
  if (sandbox.restore === undefined) return;
  for (const { containerId } of sandbox.restore.containers)
    emit(turn, containerStream(containerId), { type: 'container.created', body: { claimed } });
  prepareShim(turn, sandbox);
}

/** Somebody knows of a pod whose containers he makes or uses; those that it was restored with are nobody's yet. */
export const hasClaimedContainers = (state: NodeState, { id, restore }: PodSandbox): boolean =>
  containersOf(state, id).some((container) => isClaimed(container) || !isRestoredWith(restore, container.id));

export const isRestoredWith = (restore: PodSandbox['restore'], id: string): boolean =>
  restore?.containers.some(({ containerId }) => containerId === id) ?? false;
