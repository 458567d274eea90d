/** The CRI state of a container, derived from what was recorded; the stored state holds no second copy of it. */
import type { LinuxContainerResources } from './cri.ts';
import type { Failure } from './errors.ts';
import type { Container } from './state.ts';

/**
 *   (creating) ──> CREATED ──> RUNNING ──> EXITED
 *                     └──(StartError)───────^
 * EXITED never becomes anything else. A container found dead at start-up is EXITED at once; its code follows.
 */
export type ContainerState = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED';

/** null while it is being created or its creation is being undone: CRI does not show it then. */
export function containerStateOf(container: Container): ContainerState | null {
  if (!container.created) return null;
  if (container.exit !== null || container.exitPending) return 'CONTAINER_EXITED';
  return container.startedAtNs === null ? 'CONTAINER_CREATED' : 'CONTAINER_RUNNING';
}

/** Its process may be alive: it was launched, and no exit is known. */
export const isRunning = (container: Container): boolean => container.startedAtNs !== null && container.exit === null;

/** The limits that hold for it: those it was created with, until they are changed. */
export const resourcesOf = ({ resources, config }: Container): LinuxContainerResources | undefined =>
  resources ?? config.linux?.resources;

export const notFound = (containerId: string): Failure => ({
  reason: 'ContainerNotFound',
  message: `container_id ${containerId} names no container.`,
});
