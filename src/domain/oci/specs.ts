/** The OCI specs of what is in the state: gathers from it what the builders in oci/ want to know. */
import type { OciSpec } from '../model/oci.ts';
import { containerStateOf, liveTaskOf } from '../model/container-state.ts';
import { rulesOf } from '../model/rules.ts';
import type { RuntimeHandler } from '../model/runtime-handler.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { sandboxAnnotations } from './annotations.ts';
import { containerSpec } from './container-spec.ts';
import type { ImageMount, ImageVolume, SandboxPaths } from './input.ts';
import type { CgroupDriver, SpecSettings } from '../model/spec-settings.ts';
import { imageVolumesOf, mappedMounts } from './mounts.ts';
import { podSandboxSpec } from './pod-sandbox-spec.ts';
import { podSysctls } from './sysctls.ts';
import { hasOwnUsers } from './user-namespace.ts';
import type { MappedMount } from '../model/user-namespace.ts';
import { bundlePath, containerDir, imageMountPath, mappedDir, sandboxDir, shmPath } from '../model/paths.ts';
import { namespacePins } from './namespaces.ts';
import type { Container, NodeState, PodSandbox } from '../model/state.ts';
import { refused, type Result } from '../model/result.ts';

/** The image name that the built-in pause program goes by. */
const PAUSE_NAME = 'scribe/pause';

const PAUSE_ARGS: readonly string[] = ['/pause'];

/** Where the shim mounts a task's root file system, seen from the bundle. */
const BUNDLE_ROOTFS = 'rootfs';

/** The form of a cgroup path is the OCI runtime's business, so it follows the handler that runs the pod. */
export const cgroupDriverOf = ({ systemdCgroup }: RuntimeHandler): CgroupDriver =>
  systemdCgroup ? 'systemd' : 'cgroupfs';

const settingsFor = (facts: DaemonFacts, handler: RuntimeHandler): SpecSettings => ({
  ...facts.settings,
  cgroupDriver: cgroupDriverOf(handler),
  podAnnotations: handler.podAnnotations ?? [],
  ...(handler.baseSpec === undefined ? {} : { baseSpec: handler.baseSpec }),
  containerAnnotations: handler.containerAnnotations ?? [],
  ...(handler.privilegedDevices === undefined ? {} : { privilegedDevices: handler.privilegedDevices }),
  recursiveReadOnlyMounts: handler.recursiveReadOnlyMounts ?? false,
  netDevices: handler.netDevices ?? false,
  standardDeviceRules: rulesOf({ facts }) < 7,
  mountedDevices: rulesOf({ facts }) >= 11,
});

function sandboxPaths(facts: DaemonFacts, podSandboxId: string): SandboxPaths {
  const dir = sandboxDir(facts, podSandboxId);
  return {
    resolvConf: `${dir}/resolv.conf`,
    hosts: `${dir}/hosts`,
    hostname: `${dir}/hostname`,
    shm: shmPath(facts, podSandboxId),
  };
}

const selinuxOf = ({ selinux }: Pick<PodSandbox, 'selinux'>): Pick<PodSandbox, 'selinux'> =>
  selinux === undefined ? {} : { selinux };

const pauseImageName = (facts: DaemonFacts, { image }: Pick<PodSandbox, 'image'>): string =>
  image === null ? PAUSE_NAME : (facts.sandboxImage ?? '');

/** Those of its spec, also where nothing runs by that: of a pod without a pause task. */
export const sandboxAnnotationsOf = (
  facts: DaemonFacts,
  sandbox: Pick<PodSandbox, 'id' | 'config' | 'image' | 'handler'>,
): Readonly<Record<string, string>> =>
  sandboxAnnotations(sandbox.id, sandbox.config, pauseImageName(facts, sandbox), settingsFor(facts, sandbox.handler));

export function sandboxSpecOf(
  facts: DaemonFacts,
  sandbox: Pick<PodSandbox, 'id' | 'config' | 'network' | 'image' | 'handler' | 'selinux'>,
): Result<OciSpec> {
  const imageName = pauseImageName(facts, sandbox);
  return podSandboxSpec({
    podSandboxId: sandbox.id,
    config: sandbox.config,
    ...selinuxOf(sandbox),
    node: facts.node,
    settings: settingsFor(facts, sandbox.handler),
    netnsPath: sandbox.network?.netnsPath ?? null,
    paths: sandboxPaths(facts, sandbox.id),
    pause:
      sandbox.image === null
        ? {
            rootfsPath: hasOwnUsers(sandbox.config) ? BUNDLE_ROOTFS : facts.pauseRootfs,
            imageName,
            imageConfig: { entrypoint: PAUSE_ARGS },
          }
        : { rootfsPath: BUNDLE_ROOTFS, imageName, imageConfig: sandbox.image.config },
  });
}

/** Kernel parameters that are set as a pod's namespaces are pinned; a pause task gets them by its spec. */
export const pinnedSysctls = (
  facts: DaemonFacts,
  { config, handler }: Pick<PodSandbox, 'config' | 'handler'>,
): Readonly<Record<string, string>> => podSysctls(config, settingsFor(facts, handler)) ?? {};

export const volumesOf = (facts: DaemonFacts, container: Container): readonly ImageVolume[] =>
  imageVolumesOf(container.config, container.imageConfig.volumes, `${containerDir(facts, container.id)}/volumes`);

/** Images that the container mounts, each with the place where it is seen. */
export const imageMountsOf = (facts: DaemonFacts, { id, mountedImages = [] }: Container): readonly ImageMount[] =>
  mountedImages.map(({ image, chainIds }, index) => ({ image, chainIds, hostPath: imageMountPath(facts, id, index) }));

/** What the container sees through its pod's user namespace, beside its root file system. */
export const mappedMountsOf = (facts: DaemonFacts, container: Container): readonly MappedMount[] =>
  mappedMounts(
    container.config,
    container.facts,
    volumesOf(facts, container),
    mappedDir(bundlePath(facts, container.id)),
  );

/** Only a running container of the same pod: no pod may look into another, and an ended process's pid may be anybody's. */
function targetPidOf(state: NodeState, { config, podSandboxId }: Container): number | null {
  const target = state.containers.get(config.linux?.securityContext?.namespaceOptions?.targetId ?? '');
  if (target?.podSandboxId !== podSandboxId || containerStateOf(target) !== 'CONTAINER_RUNNING') return null;
  return liveTaskOf(target)?.pid ?? null;
}

/** A sandbox of the shim's own may be no process of this node: a machine with namespaces of its own. */
const sandboxPidOf = ({ sandboxer, task }: PodSandbox): number | null =>
  sandboxer === 'shim' && task?.pid === 0 ? null : (task?.pid ?? 0);

/** Fails when the container's config asks for what this pod, image or node can't give. */
export function containerSpecOf(state: NodeState, facts: DaemonFacts, container: Container): Result<OciSpec> {
  const sandbox = state.sandboxes.get(container.podSandboxId);
  if (sandbox === undefined || container.facts === null)
    return refused({ reason: 'Bug', message: `Container ${container.id} was asked for its spec too early.` });
  return containerSpec({
    containerId: container.id,
    config: container.config,
    ...selinuxOf(sandbox),
    podSandboxId: sandbox.id,
    sandboxConfig: sandbox.config,
    imageConfig: container.imageConfig,
    facts: container.facts,
    node: facts.node,
    settings: settingsFor(facts, sandbox.handler),
    netnsPath: sandbox.network?.netnsPath ?? null,
    paths: sandboxPaths(facts, sandbox.id),
    sandboxPid: sandboxPidOf(sandbox),
    pins: sandbox.sandboxer === 'none' ? namespacePins(facts, sandbox.id, sandbox.config) : null,
    targetPid: targetPidOf(state, container),
    imageVolumes: volumesOf(facts, container),
    imageMounts: imageMountsOf(facts, container),
    mappedDir: hasOwnUsers(sandbox.config) ? mappedDir(bundlePath(facts, container.id)) : null,
  });
}
