/**
 * Annotations in the spec: how shims and other OCI runtimes know which pod a task belongs to. The names are those that
 * the shims of containerd and the runtimes behind them look for. Pods' and containers' own annotations are handed on as
 * far as the runtime handler says so, and never in place of one of these.
 */
import type { ContainerConfig, LinuxContainerResources, PodSandboxConfig } from '../cri.ts';
import { withMatchingKeys } from '../glob.ts';
import type { SpecSettings } from './input.ts';

const PREFIX = 'io.kubernetes.cri.';
/** One shim for all tasks with the same group. */
const SHIM_GROUP = 'io.containerd.runc.v2.group';

type Annotations = Readonly<Record<string, string>>;

type Patterns = Pick<SpecSettings, 'podAnnotations' | 'containerAnnotations'>;

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

export const sandboxAnnotations = (
  podSandboxId: string,
  config: PodSandboxConfig,
  imageName: string,
  { podAnnotations }: Patterns,
): Annotations => ({
  ...withMatchingKeys(config.annotations ?? {}, podAnnotations),
  ...ofPod(podSandboxId, config),
  ...sizes(config.linux?.resources),
  [`${PREFIX}container-type`]: 'sandbox',
  [`${PREFIX}podsandbox.image-name`]: imageName,
  [`${PREFIX}sandbox-log-directory`]: config.logDirectory ?? '',
});

/** What a container says wins over what its pod says. */
export const containerAnnotations = (
  podSandboxId: string,
  sandboxConfig: PodSandboxConfig,
  { annotations = {}, metadata, image }: ContainerConfig,
  { podAnnotations, containerAnnotations: patterns }: Patterns,
): Annotations => ({
  ...withMatchingKeys(sandboxConfig.annotations ?? {}, podAnnotations),
  ...withMatchingKeys(annotations, patterns),
  ...ofPod(podSandboxId, sandboxConfig),
  [`${PREFIX}container-type`]: 'container',
  [`${PREFIX}container-name`]: metadata?.name ?? '',
  [`${PREFIX}image-name`]: image?.userSpecifiedImage || image?.image || '',
});
