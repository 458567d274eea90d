/**
 * Where things of one sandbox or container lie, as a function of its id: chosen before anything is made, so that an
 * undo knows where to look. State paths end with the boot, root paths outlive it.
 */
import type { DaemonFacts } from './daemon-facts.ts';

export const netnsPath = (facts: Pick<DaemonFacts, 'stateDir'>, podSandboxId: string): string =>
  `${facts.stateDir}/netns/${podSandboxId}`;
export const sandboxDir = (facts: DaemonFacts, podSandboxId: string): string =>
  `${facts.stateDir}/sandboxes/${podSandboxId}`;
export const shmPath = (facts: DaemonFacts, podSandboxId: string): string => `${sandboxDir(facts, podSandboxId)}/shm`;
export const bundlePath = (facts: Pick<DaemonFacts, 'stateDir'>, id: string): string =>
  `${facts.stateDir}/bundles/${id}`;
/** Where an image that a container mounts is seen: in its bundle, so that whatever cleans that unmounts it. */
export const imageMountPath = (facts: Pick<DaemonFacts, 'stateDir'>, containerId: string, index: number): string =>
  `${bundlePath(facts, containerId)}/images/${index}`;
/** What a container sees through its pod's user namespace. */
export const mappedDir = (bundle: string): string => `${bundle}/mapped`;
export const containerDir = (facts: DaemonFacts, containerId: string): string =>
  `${facts.rootDir}/containers/${containerId}`;
/** Where the archive that a container is restored from is unpacked. */
export const restoreDir = (facts: DaemonFacts, containerId: string): string =>
  `${containerDir(facts, containerId)}/restore`;
/** Where a checkpoint is put together. */
export const checkpointDir = (facts: DaemonFacts, containerId: string): string =>
  `${containerDir(facts, containerId)}/checkpoint`;
