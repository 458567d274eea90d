/**
 * The OCI spec of a container, and the questions that have to be answered before it can be built: who the user is in
 * the image, what the devices and mount sources are. The config was validated before (validate-container.ts); what
 * fails here fails because of this node, this image or this pod.
 */
import type { Result } from '../model/result.ts';
import type { ContainerConfig, LinuxContainerSecurityContext, Mount, PodSandboxConfig } from '../model/cri.ts';
import { SupplementalGroupsPolicy } from '../model/cri.ts';
import { applyCdiEdits } from './cdi/apply.ts';
import { cdiDevicesOf } from './cdi/names.ts';
import type { CdiEditsFact } from '../model/cdi.ts';
import { applyClasses } from './classes/apply.ts';
import { CLASS_WITHOUT_RESCTRL, classOf } from './classes/names.ts';
import type { ContainerQuestions, ImageSubPath } from '../model/container-facts.ts';
import type { ImageConfig } from '../model/image-content.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import { containerAnnotations } from './annotations.ts';
import { apparmorProfileOf, apparmorProfileToFind } from './apparmor.ts';
import { overBaseSpec } from './base-spec.ts';
import { containerCapabilities } from './capabilities.ts';
import { containerDevices } from './devices.ts';
import type { PrivilegedDevices } from '../model/runtime-handler.ts';
import { podHostname } from './etc-files.ts';
import type { ContainerSpecInput, ImageMount } from './input.ts';
import { containerMounts } from './mounts.ts';
import { containerNamespaces } from './namespaces.ts';
import { processArgs, processCwd, processEnv } from './process.ts';
import { refuse, refuseField, resultOf, shown } from './refuse.ts';
import { cgroupsPath, ociResources, oomScoreAdj } from './resources.ts';
import { ociSeccomp, seccompFileOf, seccompProfileOf } from './seccomp.ts';
import { checkSelinux, pathsToRelabel, taskLabels } from './selinux.ts';
import { parseSignal } from './signals.ts';
import { OCI_VERSION, type OciSpec } from '../model/oci.ts';
import { hasOwnUsers, ociMappings } from './user-namespace.ts';

/** Relative to the bundle. */
const ROOTFS = 'rootfs';

const unique = (paths: readonly string[]): readonly string[] => [...new Set(paths)];

/** A uid or gid as CRI holds it: present with no value is 0, which is root. */
const idOf = (value: { readonly value?: string } | undefined): string | undefined =>
  value === undefined ? undefined : (value.value ?? '0');

function userQuestions(
  context: LinuxContainerSecurityContext | undefined,
  imageConfig: ImageConfig,
): ContainerQuestions['user'] {
  const uid = idOf(context?.runAsUser);
  const gid = idOf(context?.runAsGroup);
  return {
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    ...(context?.runAsUsername ? { username: context.runAsUsername } : {}),
    ...(imageConfig.user ? { imageUser: imageConfig.user } : {}),
    supplementalGroups: context?.supplementalGroups ?? [],
    mergeImageGroups: context?.supplementalGroupsPolicy !== SupplementalGroupsPolicy.Strict,
  };
}

export interface Questioned {
  readonly config: ContainerConfig;
  readonly imageConfig: ImageConfig;
  /** Of the image's snapshots, base first. */
  readonly chainIds: readonly string[];
  readonly sandboxConfig: PodSandboxConfig;
  readonly mountedImages?: readonly Pick<ImageMount, 'image' | 'chainIds'>[];
  readonly privilegedDevices?: PrivilegedDevices | undefined;
  readonly node: NodeFacts;
}

const hostPathsIn = (mounts: readonly Mount[]): readonly string[] =>
  unique(mounts.flatMap(({ image, hostPath = '' }) => (image === undefined ? [hostPath] : [])));

function subPathsIn(mounts: readonly Mount[], mounted: Questioned['mountedImages'] = []): readonly ImageSubPath[] {
  const chainIdsOf = new Map(mounted.map(({ image, chainIds }) => [image, chainIds]));
  return mounts.flatMap(({ image: spec, imageSubPath: subPath }) => {
    if (spec === undefined || subPath === undefined) return [];
    const { image = '' } = spec;
    return [{ image, chainIds: chainIdsOf.get(image) ?? [], subPath }];
  });
}

/** What InspectContainer has to find out. */
export function containerQuestions({
  config,
  imageConfig,
  chainIds,
  sandboxConfig,
  mountedImages,
  privilegedDevices,
  node,
}: Questioned): ContainerQuestions {
  const mounts = config.mounts ?? [];
  const imageSubPaths = subPathsIn(mounts, mountedImages);
  const cdiDevices = cdiDevicesOf(config);
  const blockIOClass = classOf('blockIO', config, sandboxConfig);
  const context = config.linux?.securityContext;
  const seccompProfilePath = seccompFileOf(seccompProfileOf(context));
  const apparmorProfile = apparmorProfileToFind(context, node);
  return {
    chainIds,
    user: userQuestions(context, imageConfig),
    devicePaths: unique((config.devices ?? []).map(({ hostPath = '' }) => hostPath)),
    allDevices: context?.privileged === true && privilegedDevices === undefined,
    mountPaths: hostPathsIn(mounts),
    ...(imageSubPaths.length === 0 ? {} : { imageSubPaths }),
    ...(cdiDevices.length === 0 ? {} : { cdiDevices }),
    ...(blockIOClass === null ? {} : { blockIOClass: blockIOClass.name }),
    ...(seccompProfilePath === null ? {} : { seccompProfilePath }),
    ...(apparmorProfile === null ? {} : { apparmorProfile }),
  };
}

/** Fails with what of the config cannot be done with this image, in this pod, on this node. */
export function containerSpec(input: ContainerSpecInput): Result<OciSpec> {
  return resultOf(() => {
    const { baseSpec } = input.settings;
    const spec = baseSpec === undefined ? build(input) : overBaseSpec(baseSpec, build(input));
    const { cdi } = input.facts;
    // A class that an annotation names wins over one that comes with a device.
    return applyClasses(cdi === undefined ? spec : applyCdiEdits(spec, checkedCdi(cdi, input), input.settings), input);
  });
}

function checkedCdi(edits: readonly CdiEditsFact[], { settings, node }: ContainerSpecInput): readonly CdiEditsFact[] {
  const devices = 'CDI_devices ask for';
  if (edits.some(({ netDevices = [] }) => netDevices.length > 0) && !settings.netDevices)
    refuse('HostLacks', `${devices} network interfaces, which the OCI runtime of this runtime handler can not move`);
  if (edits.some(({ intelRdt }) => intelRdt !== undefined) && !node.resctrl)
    refuse('HostLacks', `${devices} ${CLASS_WITHOUT_RESCTRL}`);
  return edits;
}

function checkInput({
  podSandboxId,
  sandboxPid,
  pins,
  sandboxConfig,
  imageConfig,
  config,
  node,
  facts,
  selinux,
}: ContainerSpecInput): void {
  const context = config.linux?.securityContext;
  if (context?.privileged && !sandboxConfig.linux?.securityContext?.privileged) {
    refuseField(
      'linux.security_context.privileged',
      'is set in a pod that is not privileged: set it in the PodSandboxConfig too',
    );
  }
  if (imageConfig.stopSignal && parseSignal(imageConfig.stopSignal) === null) {
    refuse('ImageInvalid', `the image's StopSignal ${shown(imageConfig.stopSignal)} is no signal`);
  }
  checkSelinux(config, node, selinux);
  pathsToRelabel(selinux, config, facts);
  if (pins === null && sandboxPid !== null && sandboxPid <= 0)
    refuse('WrongState', `pod sandbox ${podSandboxId} has no process whose namespaces can be joined`);
}

/** Energy counters of the processor, from which a container could tell what others calculate with (CVE-2020-8694). */
const POWERCAP = '/sys/devices/virtual/powercap';

/** Kubelets of before that was known do not name it. A container that asks for no masks is to see all. */
const maskedPaths = (asked: readonly string[]): readonly string[] =>
  asked.length === 0 || asked.includes(POWERCAP) ? asked : [...asked, POWERCAP];

function build(input: ContainerSpecInput): OciSpec {
  checkInput(input);
  const { containerId, config, podSandboxId, sandboxConfig, imageConfig, facts, node, settings, paths } = input;
  const context = config.linux?.securityContext;
  const privileged = context?.privileged ?? false;
  const resources = config.linux?.resources;
  const capabilities = containerCapabilities(context?.capabilities, privileged, node, settings.baseSpec?.capabilities);
  const {
    devices,
    rules,
    mounts: mountedDevices,
  } = containerDevices(
    config,
    facts.devices,
    privileged ? (settings.privilegedDevices ?? 'given') : 'asked',
    settings,
    hasOwnUsers(sandboxConfig),
  );
  const { mounts, rootfsPropagation } = containerMounts({
    config,
    sandboxConfig,
    paths,
    settings,
    facts,
    imageVolumes: input.imageVolumes,
    imageMounts: input.imageMounts,
    mappedDir: input.mappedDir,
    privileged,
  });
  const seccomp = ociSeccomp(seccompProfileOf(context), node, capabilities.bounding, facts.seccompProfile);
  const apparmorProfile = apparmorProfileOf(context, node, facts.apparmor);
  const labels = taskLabels(input.selinux, config);
  return {
    ociVersion: OCI_VERSION,
    process: {
      ...(config.tty ? { terminal: true } : {}),
      user: facts.user,
      args: processArgs(config, imageConfig),
      env: processEnv(config, imageConfig, podHostname(sandboxConfig, node), settings.baseSpec?.env),
      cwd: processCwd(config, imageConfig),
      capabilities,
      noNewPrivileges: context?.noNewPrivs ?? false,
      oomScoreAdj: oomScoreAdj(Number(resources?.oomScoreAdj ?? 0), node, settings.restrictOomScoreAdj),
      ...(apparmorProfile === undefined ? {} : { apparmorProfile }),
      ...(labels.process === undefined ? {} : { selinuxLabel: labels.process }),
    },
    root: { path: ROOTFS, ...(context?.readonlyRootfs ? { readonly: true } : {}) },
    mounts: [...mounts, ...mountedDevices],
    annotations: containerAnnotations(podSandboxId, sandboxConfig, config, settings),
    linux: {
      ...ociMappings(sandboxConfig),
      namespaces: containerNamespaces(sandboxConfig, context?.namespaceOptions, input, node, privileged),
      cgroupsPath: cgroupsPath(settings.cgroupDriver, sandboxConfig.linux?.cgroupParent, containerId),
      resources: { devices: rules, ...ociResources(resources, node) },
      ...(devices.length === 0 ? {} : { devices }),
      ...(seccomp === undefined ? {} : { seccomp }),
      ...(labels.mount === undefined ? {} : { mountLabel: labels.mount }),
      maskedPaths: privileged ? [] : maskedPaths(context?.maskedPaths ?? []),
      readonlyPaths: privileged ? [] : (context?.readonlyPaths ?? []),
      ...(rootfsPropagation === undefined ? {} : { rootfsPropagation }),
    },
  };
}
