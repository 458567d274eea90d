/**
 * What the tests of OCI specs share: a node that never changes, configs as a kubelet sends them, and specs built from
 * them. Every builder takes what the test is about and fills in the rest.
 */
import assert from 'node:assert/strict';
import type { ContainerConfig, PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import type { ContainerFacts } from '../../../src/domain/model/container-facts.ts';
import type { ImageConfig } from '../../../src/domain/model/image-content.ts';
import type { Failure } from '../../../src/domain/model/errors.ts';
import type { NodeFacts } from '../../../src/domain/model/node-facts.ts';
import { containerSpec } from '../../../src/domain/oci/container-spec.ts';
import type { ContainerSpecInput, PodSandboxSpecInput, SandboxPaths } from '../../../src/domain/oci/input.ts';
import type { SpecSettings } from '../../../src/domain/model/spec-settings.ts';
import { podSandboxSpec } from '../../../src/domain/oci/pod-sandbox-spec.ts';
import type { Result } from '../../../src/domain/model/result.ts';
import type { OciSpec } from '../../../src/domain/model/oci.ts';

export const POD_ID = 'a'.repeat(64);
export const CONTAINER_ID = 'b'.repeat(64);

const allCapabilities = (
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE ' +
  'NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN ' +
  'SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP ' +
  'MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE'
)
  .split(' ')
  .map((name) => `CAP_${name}`);

const v2Controllers = Object.fromEntries(
  ['cpuset', 'cpu', 'io', 'memory', 'hugetlb', 'pids'].map((name) => [name, '/sys/fs/cgroup']),
);

export const nodeV2: NodeFacts = {
  bootId: '00000000-0000-4000-8000-000000000000',
  kernelRelease: '6.12.0',
  architecture: 'amd64',
  cgroup: { version: 2, controllers: v2Controllers, swapAccounting: true },
  capabilities: allCapabilities,
  canRaiseLimits: true,
  ownOomScoreAdj: -999,
  seccomp: true,
  apparmor: false,
  selinux: false,
  hugepageSizes: ['2MB', '1GB'],
  hostname: 'node-1',
  cpuCount: 4,
};

/** An older node, and a daemon with fewer rights. */
export const nodeV1: NodeFacts = {
  ...nodeV2,
  cgroup: {
    version: 1,
    controllers: { cpu: '/sys/fs/cgroup/cpu', memory: '/sys/fs/cgroup/memory', pids: '/sys/fs/cgroup/pids' },
    swapAccounting: false,
  },
  capabilities: allCapabilities.filter((name) => name !== 'CAP_SYS_RESOURCE'),
  canRaiseLimits: false,
  ownOomScoreAdj: 0,
};

export const settings: SpecSettings = {
  cgroupDriver: 'cgroupfs',
  restrictOomScoreAdj: false,
  enableUnprivilegedPorts: false,
  enableUnprivilegedIcmp: false,
};

export const paths: SandboxPaths = {
  resolvConf: '/state/pod/resolv.conf',
  hosts: '/state/pod/hosts',
  hostname: '/state/pod/hostname',
  shm: '/state/pod/shm',
};

export const podConfig: PodSandboxConfig = {
  metadata: { name: 'web', uid: '3f6f3f7c', namespace: 'default' },
  hostname: 'web',
  logDirectory: '/var/log/pods/default_web',
  linux: { cgroupParent: '/kubepods/pod3f6f3f7c' },
};

export const imageConfig: ImageConfig = {
  entrypoint: ['/entry'],
  cmd: ['serve', '--fast'],
  env: ['PATH=/app/bin:/bin', 'MODE=image'],
  workingDir: '/app',
};

export const containerConfig: ContainerConfig = {
  metadata: { name: 'main' },
  image: { image: 'sha256:0123', userSpecifiedImage: 'registry.example/web:1' },
};

export const rootFacts: ContainerFacts = {
  user: { uid: 0, gid: 0, additionalGids: [0] },
  devices: [],
  mounts: [],
};

export const sandboxInput = (
  config: PodSandboxConfig = podConfig,
  overrides: Partial<PodSandboxSpecInput> = {},
): PodSandboxSpecInput => ({
  podSandboxId: POD_ID,
  config,
  node: nodeV2,
  settings,
  netnsPath: '/state/netns/web',
  paths,
  pause: { rootfsPath: '/state/pause', imageName: 'scribe/pause', imageConfig: { entrypoint: ['/pause'] } },
  ...overrides,
});

export const containerInput = (
  config: ContainerConfig = {},
  overrides: Partial<ContainerSpecInput> = {},
): ContainerSpecInput => ({
  containerId: CONTAINER_ID,
  config: { ...containerConfig, ...config },
  podSandboxId: POD_ID,
  sandboxConfig: podConfig,
  imageConfig,
  facts: rootFacts,
  node: nodeV2,
  settings,
  netnsPath: '/state/netns/web',
  paths,
  sandboxPid: 4242,
  pins: null,
  targetPid: null,
  imageVolumes: [],
  imageMounts: [],
  mappedDir: null,
  ...overrides,
});

export const specIn = (result: Result<OciSpec>): OciSpec => {
  assert.ok(result.ok, result.ok ? '' : `refused: ${result.failure.message}`);
  return result.value;
};

export const failureIn = (result: Result<OciSpec>): Failure => {
  assert.ok(!result.ok, 'was not refused');
  return result.failure;
};

export const buildContainer = (config?: ContainerConfig, overrides?: Partial<ContainerSpecInput>): OciSpec =>
  specIn(containerSpec(containerInput(config, overrides)));

export const buildSandbox = (config?: PodSandboxConfig, overrides?: Partial<PodSandboxSpecInput>): OciSpec =>
  specIn(podSandboxSpec(sandboxInput(config, overrides)));

/** `context` is the container's security context. */
export const withContext = (context: NonNullable<ContainerConfig['linux']>['securityContext']): ContainerConfig => ({
  linux: { securityContext: context },
});

export const withResources = (resources: NonNullable<ContainerConfig['linux']>['resources']): ContainerConfig => ({
  linux: { resources },
});

export const privilegedPod: PodSandboxConfig = {
  ...podConfig,
  linux: { ...podConfig.linux, securityContext: { privileged: true } },
};
