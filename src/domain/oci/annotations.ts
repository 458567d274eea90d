/**
 * Annotations in the spec: how shims and other OCI runtimes know which pod a task belongs to. The names are those that
 * the shims of containerd and the runtimes behind them look for; pods' own annotations are not handed on.
 */
import type { LinuxContainerResources, PodSandboxConfig } from '../cri.ts';

const PREFIX = 'io.kubernetes.cri.';
/** One shim for all tasks with the same group. */
const SHIM_GROUP = 'io.containerd.runc.v2.group';

type Annotations = Readonly<Record<string, string>>;

const ofPod = (podSandboxId: string, config: PodSandboxConfig): Annotations => ({
  [SHIM_GROUP]: podSandboxId,
  [`${PREFIX}sandbox-id`]: podSandboxId,
  [`${PREFIX}sandbox-name`]: config.metadata?.name ?? '',
  [`${PREFIX}sandbox-namespace`]: config.metadata?.namespace ?? '',
  [`${PREFIX}sandbox-uid`]: config.metadata?.uid ?? '',
});

/** What the pod's containers will need together: runtimes that start a machine for a pod size it by this. */
const sizes = (resources: LinuxContainerResources | undefined): Annotations =>
  resources === undefined
    ? {}
    : {
        [`${PREFIX}sandbox-cpu-period`]: resources.cpuPeriod ?? '0',
        [`${PREFIX}sandbox-cpu-quota`]: resources.cpuQuota ?? '0',
        [`${PREFIX}sandbox-cpu-shares`]: resources.cpuShares ?? '0',
        [`${PREFIX}sandbox-memory`]: resources.memoryLimitInBytes ?? '0',
      };

export const sandboxAnnotations = (podSandboxId: string, config: PodSandboxConfig, imageName: string): Annotations => ({
  ...ofPod(podSandboxId, config),
  ...sizes(config.linux?.resources),
  [`${PREFIX}container-type`]: 'sandbox',
  [`${PREFIX}podsandbox.image-name`]: imageName,
  [`${PREFIX}sandbox-log-directory`]: config.logDirectory ?? '',
});

export const containerAnnotations = (
  podSandboxId: string,
  config: PodSandboxConfig,
  containerName: string,
  imageName: string,
): Annotations => ({
  ...ofPod(podSandboxId, config),
  [`${PREFIX}container-type`]: 'container',
  [`${PREFIX}container-name`]: containerName,
  [`${PREFIX}image-name`]: imageName,
});
