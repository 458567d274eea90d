/**
 * Checks a ContainerConfig before anything is made of it. Mistakes that depend on the image and the facts of the node
 * are found by building the spec (container-spec.ts).
 */
import {
  type ContainerConfig,
  type Device,
  type ImageSpec,
  type Mount,
  MountPropagation,
  NamespaceMode,
  type NamespaceOption,
  type PodSandboxConfig,
} from '../model/cri.ts';
import { checkApparmor } from './apparmor.ts';
import { checkCapabilities } from './capabilities.ts';
import {
  checkAbsolutePath,
  checkFilePath,
  checkLine,
  checkRelativePath,
  checkRequired,
  checkResources,
  checkUser,
  checkWords,
} from './checks.ts';
import { checkCdiDevices } from './cdi/names.ts';
import { cleanPath } from './paths.ts';
import { refuseField, shown } from './refuse.ts';
import { RESOURCES_FIELD } from './resources.ts';
import { checkSeccomp } from './seccomp.ts';
import { checkSelinuxOptions } from './selinux.ts';
import { isCriSignal } from './signals.ts';
import { checkContainerUserNamespace, checkMountMappings, NAMESPACE_FIELD } from './user-namespace.ts';

/** More would take the runtime minutes, and the kernel has a limit of its own (fs.mount-max). */
const MAX_MOUNTS = 10_000;
const MAX_DEVICES = 1_000;
/** What 0.37 of the API lets a caller add to a mount. */
const MOUNT_OPTIONS: readonly string[] = ['noexec', 'nodev', 'nosuid'];

function checkEnvs(config: ContainerConfig): void {
  for (const { key } of config.envs ?? []) {
    checkRequired('envs.key', key);
    if (key?.includes('=')) refuseField('envs.key', `is ${shown(key)}: a name can not hold "="`);
  }
}

function checkImageMount({ hostPath, readonly, imageSubPath }: Mount, { image }: ImageSpec, at: string): void {
  if (!image) refuseField('mounts.image', `at ${at} names no image`);
  if (hostPath) refuseField('mounts.host_path', `at ${at} is set beside an image: leave one of them out`);
  if (!readonly) refuseField('mounts.readonly', `at ${at} is not set: an image can only be mounted read-only`);
  if (imageSubPath) checkRelativePath('mounts.image_sub_path', imageSubPath);
}

function checkMount(mount: Mount, rules: number): void {
  checkAbsolutePath('mounts.container_path', mount.containerPath);
  const at = shown(mount.containerPath ?? '');
  if (cleanPath(mount.containerPath ?? '') === '/')
    refuseField('mounts.container_path', 'is the root of the container: mount below it');
  if (mount.image === undefined) {
    checkAbsolutePath('mounts.host_path', mount.hostPath);
    // It means nothing without an image; kubelet sets it for each subPath in a pod that mounts an image.
    if (mount.imageSubPath && rules < 12)
      refuseField('mounts.image_sub_path', `at ${at} is set without an image: name one`);
  } else checkImageMount(mount, mount.image, at);
  const propagation = mount.propagation ?? MountPropagation.PROPAGATION_PRIVATE;
  if (!Object.values<number>(MountPropagation).includes(propagation)) {
    refuseField(
      'mounts.propagation',
      `at ${at} is ${propagation}: it must be private, host-to-container or bidirectional`,
    );
  }
  if (mount.recursiveReadOnly && (!mount.readonly || propagation !== MountPropagation.PROPAGATION_PRIVATE)) {
    refuseField('mounts.recursive_read_only', `at ${at} needs readonly and private propagation: set both`);
  }
  for (const option of mount.mountOptions ?? []) {
    if (!MOUNT_OPTIONS.includes(option)) {
      refuseField(
        'mounts.mount_options',
        `at ${at} holds ${shown(option)}: it must be one of ${MOUNT_OPTIONS.join(', ')}`,
      );
    }
  }
}

function checkDevice(device: Device): void {
  checkAbsolutePath('devices.host_path', device.hostPath);
  if (device.containerPath) checkAbsolutePath('devices.container_path', device.containerPath);
  if (device.permissions && !/^(?!.*(.).*\1)[rwm]{1,3}$/.test(device.permissions)) {
    refuseField('devices.permissions', `is ${shown(device.permissions)}: it must be some of r, w and m`);
  }
}

function checkNamespaces(options: NamespaceOption | undefined, sandboxConfig: PodSandboxConfig): void {
  const pid = options?.pid ?? NamespaceMode.POD;
  if (!Object.values<number>(NamespaceMode).includes(pid))
    refuseField(`${NAMESPACE_FIELD}.pid`, `is ${pid}, which is no mode`);
  if (pid === NamespaceMode.TARGET) checkRequired(`${NAMESPACE_FIELD}.target_id`, options?.targetId);
  checkContainerUserNamespace(options?.usernsOptions, sandboxConfig);
}

function checkPaths(field: string, paths: readonly string[] | undefined): void {
  for (const path of paths ?? []) checkAbsolutePath(field, path);
}

/** @throws {FailureError} naming the first field that is not right */
export function checkContainerConfig(config: ContainerConfig, sandboxConfig: PodSandboxConfig, rules: number): void {
  checkRequired('metadata.name', config.metadata?.name);
  checkRequired('image.image', config.image?.image);
  checkWords('command', config.command);
  checkWords('args', config.args);
  if (config.workingDir) checkAbsolutePath('working_dir', config.workingDir);
  if (config.logPath) checkFilePath('log_path', config.logPath);
  checkEnvs(config);
  if ((config.mounts ?? []).length > MAX_MOUNTS) refuseField('mounts', `has more than ${MAX_MOUNTS} entries`);
  for (const mount of config.mounts ?? []) {
    checkMount(mount, rules);
    checkMountMappings(mount, sandboxConfig);
  }
  if ((config.devices ?? []).length > MAX_DEVICES) {
    refuseField('devices', `has more than ${MAX_DEVICES} entries: name a directory of devices`);
  }
  config.devices?.forEach(checkDevice);
  checkCdiDevices(config);
  if (!isCriSignal(config.stopSignal ?? 0)) refuseField('stop_signal', `is ${config.stopSignal}, which is no signal`);
  checkResources(RESOURCES_FIELD, config.linux?.resources);

  const context = config.linux?.securityContext;
  if (context?.privileged && !sandboxConfig.linux?.securityContext?.privileged) {
    refuseField(
      'linux.security_context.privileged',
      'is set in a pod that is not privileged: set it in the PodSandboxConfig too',
    );
  }
  checkCapabilities(context?.capabilities);
  checkNamespaces(context?.namespaceOptions, sandboxConfig);
  checkUser(context);
  checkSeccomp(context);
  checkPaths('linux.security_context.masked_paths', context?.maskedPaths);
  checkPaths('linux.security_context.readonly_paths', context?.readonlyPaths);
  checkSelinuxOptions(config);
  checkApparmor(context);
  checkLine('linux.security_context.apparmor_profile', context?.apparmorProfile);
  checkLine('linux.security_context.apparmor.localhost_ref', context?.apparmor?.localhostRef);
}
