/**
 * Annotations in the spec: how shims and other OCI runtimes know which pod a task belongs to. The names are those that
 * the shims of containerd and the runtimes behind them look for. Pods' and containers' own annotations are handed on as
 * far as the runtime handler says so, and never in place of one of these, nor what is an order to an OCI runtime.
 */
import type { ContainerConfig, LinuxContainerResources, PodSandboxConfig } from '../model/cri.ts';
import { withMatchingKeys } from '../values/glob.ts';
import type { SpecSettings } from '../model/spec-settings.ts';

const PREFIX = 'io.kubernetes.cri.';
/** One shim for all tasks with the same group. */
const SHIM_GROUP = 'io.containerd.runc.v2.group';

type Annotations = Readonly<Record<string, string>>;

/**
 * What OCI runtimes and shims take as orders to act on the node as root: properties of systemd units, files that hooks
 * write to, plugins to load, CRIU's own configuration, tasks of another group. Whoever may make a pod may annotate it,
 * and a pattern as wide as "*" means the annotations of the pod's users, not these. An admin can still give them to all
 * containers of a runtime handler, by its base spec.
 */
const ORDERS = ['org.systemd.property.', 'run.oci.', 'org.criu.', 'io.containerd.', PREFIX];
/** Which of crun's handlers (WebAssembly, a machine) runs the container: those that the admin has installed. */
const HARMLESS = 'run.oci.handler';

const isOrder = (key: string): boolean => key !== HARMLESS && ORDERS.some((prefix) => key.startsWith(prefix));

/** The annotations without those that none but scribe and the node's admin may give. */
export const withoutOrders = (annotations: Annotations): Annotations =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => !isOrder(key)));

/** What a shim that holds pods itself is told of one. */
export const configWithoutOrders = (config: PodSandboxConfig): PodSandboxConfig =>
  config.annotations === undefined ? config : { ...config, annotations: withoutOrders(config.annotations) };

const handedOn = (annotations: Annotations | undefined, patterns: readonly string[] | undefined): Annotations =>
  withoutOrders(withMatchingKeys(annotations ?? {}, patterns));

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
  ...handedOn(config.annotations, podAnnotations),
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
  { annotations, metadata, image }: ContainerConfig,
  { podAnnotations, containerAnnotations: patterns }: Patterns,
): Annotations => ({
  ...handedOn(sandboxConfig.annotations, podAnnotations),
  ...handedOn(annotations, patterns),
  ...ofPod(podSandboxId, sandboxConfig),
  [`${PREFIX}container-type`]: 'container',
  [`${PREFIX}container-name`]: metadata?.name ?? '',
  [`${PREFIX}image-name`]: image?.userSpecifiedImage || image?.image || '',
});
