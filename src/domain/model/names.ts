/**
 * CRI names, each with at most one owner: reserved by the record that requests the object, released by the one that
 * says that nothing of it is left. The index itself is NodeState.names.
 */
import type { ContainerMetadata, PodSandboxMetadata } from './cri.ts';

export const sandboxName = ({ name = '', namespace = '', uid = '', attempt = 0 }: PodSandboxMetadata): string =>
  `${name}_${namespace}_${uid}_${attempt}`;

/** A container's name within its pod; the pod is named by its id, so that two attempts of one pod can't collide. */
export const containerName = ({ name = '', attempt = 0 }: ContainerMetadata, podSandboxId: string): string =>
  `${name}_${podSandboxId}_${attempt}`;
