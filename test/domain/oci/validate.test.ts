/** Which configs are refused, for which field, and that what is refused would have done harm or failed later. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  ContainerConfig,
  IDMapping,
  NamespaceOption,
  PodSandboxConfig,
  UserNamespace,
} from '../../../src/domain/model/cri.ts';
import type { FailureReason } from '../../../src/domain/model/errors.ts';
import { validateContainerConfig, validatePodSandboxConfig } from '../../../src/domain/oci/validate.ts';
import {
  containerConfig,
  nodeV1,
  nodeV2,
  podConfig,
  privilegedPod,
  settings,
  withContext,
  withResources,
} from './support.ts';

type Case = readonly [field: string, reason?: FailureReason];

const pod = (overrides: PodSandboxConfig, node = nodeV2) =>
  validatePodSandboxConfig({ ...podConfig, ...overrides }, { node, settings });
const container = (overrides: ContainerConfig, sandbox = podConfig) =>
  validateContainerConfig({ ...containerConfig, ...overrides }, sandbox);

const NAMESPACES = 'linux.security_context.namespace_options';
const USERNS = `${NAMESPACES}.userns_options`;
const mappings: readonly IDMapping[] = [{ hostId: 65536, length: 65536 }];
const userns = (usernsOptions: UserNamespace, others: NamespaceOption = {}): PodSandboxConfig => ({
  linux: { securityContext: { namespaceOptions: { ...others, usernsOptions } } },
});
const usernsPod: PodSandboxConfig = { ...podConfig, ...userns({ uids: mappings, gids: mappings }) };

const podRefusals: readonly (readonly [PodSandboxConfig, ...Case])[] = [
  [{ metadata: undefined }, 'metadata.name'],
  [{ metadata: { name: 'a', namespace: 'b' } }, 'metadata.uid'],
  [{ metadata: { name: 'a', uid: 'c' } }, 'metadata.namespace'],
  [{ metadata: { name: 'a\nb', namespace: 'b', uid: 'c' } }, 'metadata.name'],
  [{ hostname: 'x'.repeat(65) }, 'hostname'],
  [{ hostname: 'a\n10.0.0.1 evil' }, 'hostname'],
  [{ hostname: 'a b' }, 'hostname'],
  [{ logDirectory: 'logs' }, 'log_directory'],
  [{ logDirectory: '/var/log/../../etc' }, 'log_directory'],
  [{ dnsConfig: { servers: ['1.1.1.1\nsearch evil'] } }, 'dns_config.servers'],
  [{ dnsConfig: { options: [''] } }, 'dns_config.options'],
  [{ dnsConfig: { searches: ['a b'] } }, 'dns_config.searches'],
  [{ portMappings: [{ hostPort: 65536 }] }, 'port_mappings.host_port'],
  [{ portMappings: [{ containerPort: -1 }] }, 'port_mappings.container_port'],
  [{ portMappings: [{ protocol: 7 }] }, 'port_mappings.protocol'],
  [{ portMappings: [{ hostIp: '1.1.1.1; rm' }] }, 'port_mappings.host_ip'],
  [{ linux: { cgroupParent: '/a/../../b' } }, 'linux.cgroup_parent'],
  [{ linux: { cgroupParent: 'a.slice:b' } }, 'linux.cgroup_parent'],
  [{ linux: { sysctls: { 'net..x': '1' } } }, 'linux.sysctls'],
  [{ linux: { sysctls: { '../../etc/x': '1' } } }, 'linux.sysctls'],
  [{ linux: { sysctls: { 'kernel.sem': '1\n2' } } }, 'linux.sysctls'],
  [
    { linux: { sysctls: { 'net/core/somaxconn': '1' }, securityContext: { namespaceOptions: { network: 2 } } } },
    'linux.sysctls',
  ],
  [
    { linux: { sysctls: { 'kernel.msgmax': '1' }, securityContext: { namespaceOptions: { ipc: 2 } } } },
    'linux.sysctls',
  ],
  [{ linux: { resources: { cpuShares: '-1' } } }, 'linux.resources.cpu_shares'],
  [{ linux: { overhead: { memoryLimitInBytes: '-2' } } }, 'linux.overhead.memory_limit_in_bytes'],
  [{ linux: { securityContext: { runAsGroup: {} } } }, 'linux.security_context.run_as_group'],
  [{ linux: { securityContext: { runAsUser: { value: '4294967295' } } } }, 'linux.security_context.run_as_user'],
  [{ linux: { securityContext: { supplementalGroups: ['-5'] } } }, 'linux.security_context.supplemental_groups'],
  [
    { linux: { securityContext: { namespaceOptions: { network: 1 } } } },
    'linux.security_context.namespace_options.network',
  ],
  [{ linux: { securityContext: { namespaceOptions: { ipc: 3 } } } }, 'linux.security_context.namespace_options.ipc'],
  [{ linux: { securityContext: { namespaceOptions: { pid: 3 } } } }, 'linux.security_context.namespace_options.pid'],
  [userns({}), `${USERNS}.uids`],
  [userns({ mode: 1, uids: mappings, gids: mappings }), `${USERNS}.mode`],
  [userns({ mode: 3, uids: mappings, gids: mappings }), `${USERNS}.mode`],
  [userns({ mode: 2, uids: mappings }), USERNS],
  [userns({ uids: mappings }), `${USERNS}.gids`],
  [userns({ uids: [...mappings, ...mappings], gids: mappings }), `${USERNS}.uids`],
  [userns({ uids: [{ containerId: 1, hostId: 65536, length: 65536 }], gids: mappings }), `${USERNS}.uids.container_id`],
  [userns({ uids: mappings, gids: [{ hostId: 65536 }] }), `${USERNS}.gids.length`],
  [userns({ uids: [{ hostId: 4294901761, length: 65536 }], gids: mappings }), `${USERNS}.uids.length`],
  [userns({ uids: mappings, gids: mappings }, { network: 2 }), 'linux.security_context.namespace_options.network'],
  [userns({ uids: mappings, gids: mappings }, { pid: 2 }), 'linux.security_context.namespace_options.pid'],
  [userns({ uids: mappings, gids: mappings }, { ipc: 2 }), 'linux.security_context.namespace_options.ipc'],
  [
    { linux: { securityContext: { seccomp: { profileType: 2, localhostRef: 'x' } } } },
    'linux.security_context.seccomp',
  ],
];

const containerRefusals: readonly (readonly [ContainerConfig, ...Case])[] = [
  [{ metadata: {} }, 'metadata.name'],
  [{ image: {} }, 'image.image'],
  [{ command: ['a\0b'] }, 'command'],
  [{ args: ['\0'] }, 'args'],
  [{ workingDir: 'relative' }, 'working_dir'],
  [
    { linux: { resources: { memoryLimitInBytes: '64000000', memorySwapLimitInBytes: '32000000' } } },
    'linux.resources.memory_swap_limit_in_bytes',
  ],
  [{ workingDir: '/a\nb' }, 'working_dir'],
  [{ logPath: '/abs' }, 'log_path'],
  [{ logPath: 'a/../../b' }, 'log_path'],
  [{ logPath: '.' }, 'log_path'],
  [{ logPath: 'a/.' }, 'log_path'],
  [{ logPath: 'a/' }, 'log_path'],
  [{ envs: [{}] }, 'envs.key'],
  [{ envs: [{ key: 'A=B' }] }, 'envs.key'],
  [{ envs: [{ key: 'A\nB' }] }, 'envs.key'],
  [{ mounts: [{ hostPath: '/h' }] }, 'mounts.container_path'],
  [{ mounts: [{ containerPath: 'x', hostPath: '/h' }] }, 'mounts.container_path'],
  [{ mounts: [{ containerPath: '/x/..', hostPath: '/h' }] }, 'mounts.container_path'],
  [{ mounts: [{ containerPath: '/x' }] }, 'mounts.host_path'],
  [{ mounts: [{ containerPath: '/x', hostPath: 'h' }] }, 'mounts.host_path'],
  [{ mounts: [{ containerPath: '/x', hostPath: '/h', propagation: 9 }] }, 'mounts.propagation'],
  [{ mounts: [{ containerPath: '/x', hostPath: '/h', recursiveReadOnly: true }] }, 'mounts.recursive_read_only'],
  [{ mounts: [{ containerPath: '/x', hostPath: '/h', mountOptions: ['suid'] }] }, 'mounts.mount_options'],
  [{ mounts: [{ containerPath: '/x', readonly: true, image: {} }] }, 'mounts.image'],
  [{ mounts: [{ containerPath: '/x', image: { image: 'a' } }] }, 'mounts.readonly'],
  [{ mounts: [{ containerPath: '/x', hostPath: '/h', readonly: true, image: { image: 'a' } }] }, 'mounts.host_path'],
  [
    { mounts: [{ containerPath: '/x', readonly: true, image: { image: 'a' }, imageSubPath: 'a/../../b' }] },
    'mounts.image_sub_path',
  ],
  [
    { mounts: [{ containerPath: '/x', readonly: true, image: { image: 'a' }, imageSubPath: '/a' }] },
    'mounts.image_sub_path',
  ],
  [{ mounts: [{ containerPath: '/x', hostPath: '/h', gidMappings: mappings }] }, 'mounts.uidMappings'],
  [withContext({ namespaceOptions: { usernsOptions: { uids: mappings, gids: mappings } } }), USERNS],
  [withContext({ namespaceOptions: { usernsOptions: {} } }), `${USERNS}.uids`],
  [{ devices: [{ hostPath: 'kvm' }] }, 'devices.host_path'],
  [{ devices: [{ hostPath: '/dev/kvm', containerPath: 'kvm' }] }, 'devices.container_path'],
  [{ devices: [{ hostPath: '/dev/kvm', permissions: 'rwx' }] }, 'devices.permissions'],
  [{ devices: [{ hostPath: '/dev/kvm', permissions: 'rr' }] }, 'devices.permissions'],
  [{ CDIDevices: [{ name: 'vendor.com/gpu' }] }, 'CDI_devices.name'],
  [{ CDIDevices: [{}] }, 'CDI_devices.name'],
  [{ CDIDevices: [{ name: '1vendor/gpu=0' }] }, 'CDI_devices.name'],
  [{ CDIDevices: [{ name: 'vendor.com/gpu=../0' }] }, 'CDI_devices.name'],
  [{ annotations: { 'cdi.k8s.io/plugin': 'vendor.com/gpu=0,gpu1' } }, 'annotations'],
  [{ stopSignal: 66 }, 'stop_signal'],
  [{ stopSignal: -1 }, 'stop_signal'],
  [withResources({ cpuQuota: '-2' }), 'linux.resources.cpu_quota'],
  [withResources({ cpuQuota: '5' }), 'linux.resources.cpu_quota'],
  [withResources({ cpuPeriod: '2000000' }), 'linux.resources.cpu_period'],
  [withResources({ oomScoreAdj: '1001' }), 'linux.resources.oom_score_adj'],
  [withResources({ memoryLimitInBytes: '9223372036854775808' }), 'linux.resources.memory_limit_in_bytes'],
  [withResources({ memoryLimitInBytes: '1e9' }), 'linux.resources.memory_limit_in_bytes'],
  [withResources({ cpusetCpus: '0; true' }), 'linux.resources.cpuset_cpus'],
  [withResources({ hugepageLimits: [{ pageSize: '2mb' }] }), 'linux.resources.hugepage_limits.page_size'],
  [withResources({ unified: { '../x': '1' } }), 'linux.resources.unified'],
  [withResources({ unified: { 'memory.high': '1\n2' } }), 'linux.resources.unified'],
  [withContext({ privileged: true }), 'linux.security_context.privileged'],
  [
    withContext({ capabilities: { addCapabilities: ['NET_RWA'] } }),
    'linux.security_context.capabilities.add_capabilities',
  ],
  [
    withContext({ capabilities: { dropCapabilities: ['ALLL'] } }),
    'linux.security_context.capabilities.drop_capabilities',
  ],
  [
    withContext({ capabilities: { addAmbientCapabilities: ['NET_RWA'] } }),
    'linux.security_context.capabilities.add_ambient_capabilities',
  ],
  [withContext({ namespaceOptions: { pid: 3 } }), 'linux.security_context.namespace_options.target_id'],
  [withContext({ namespaceOptions: { pid: 4 } }), 'linux.security_context.namespace_options.pid'],
  [withContext({ runAsUsername: 'a:b' }), 'linux.security_context.run_as_username'],
  [withContext({ runAsUsername: 'a\nb' }), 'linux.security_context.run_as_username'],
  [withContext({ runAsUsername: 'a', runAsUser: {} }), 'linux.security_context.run_as_username'],
  [withContext({ runAsGroup: { value: '1' } }), 'linux.security_context.run_as_group'],
  [
    withContext({ seccomp: { profileType: 2, localhostRef: 'rel.json' } }),
    'linux.security_context.seccomp.localhost_ref',
  ],
  [withContext({ seccompProfilePath: 'what' }), 'linux.security_context.seccomp_profile_path'],
  [withContext({ maskedPaths: ['proc'] }), 'linux.security_context.masked_paths'],
  [withContext({ readonlyPaths: [''] }), 'linux.security_context.readonly_paths'],
];

describe('PodSandboxConfig', () => {
  for (const [config, field, reason = 'InvalidField'] of podRefusals) {
    it(`refuses ${JSON.stringify(config)}`, () => {
      const failure = pod(config);
      assert.equal(failure?.reason, reason, failure?.message);
      assert.ok(failure.message.startsWith(field), failure.message);
      assert.doesNotMatch(failure.message, /[\n\0]/);
    });
  }

  it('takes what kubelet sends', () => {
    assert.equal(pod({}), null);
    assert.equal(pod({ hostname: '', logDirectory: '' }), null);
    const namespaceOptions = { pid: 1, usernsOptions: { mode: 2 } };
    assert.equal(
      pod({ linux: { securityContext: { namespaceOptions, seccomp: {}, runAsUser: {}, runAsGroup: {} } } }),
      null,
    );
    assert.equal(pod({ dnsConfig: { servers: ['fd00::a'], options: ['ndots:5', 'edns0'] } }), null);
    assert.equal(
      pod({ portMappings: [{ containerPort: 80, hostPort: 8080, hostIp: 'fe80::1%eth0', protocol: 2 }] }),
      null,
    );
  });

  it('says what only this node cannot do', () => {
    const seccomp = { linux: { securityContext: { seccomp: {} } } };
    assert.equal(pod(seccomp, { ...nodeV1, seccomp: false })?.reason, 'HostLacks');
    const facts = { node: nodeV2, settings: { ...settings, cgroupDriver: 'systemd' as const } };
    assert.match(validatePodSandboxConfig(podConfig, facts)?.message ?? '', /^linux\.cgroup_parent/);
  });
});

describe('ContainerConfig', () => {
  for (const [config, field, reason = 'InvalidField'] of containerRefusals) {
    it(`refuses ${JSON.stringify(config)}`, () => {
      const failure = container(config);
      assert.equal(failure?.reason, reason, failure?.message);
      assert.ok(failure.message.startsWith(field), failure.message);
      assert.doesNotMatch(failure.message, /[\n\0]/);
    });
  }

  it('takes what kubelet sends', () => {
    assert.equal(container({}), null);
    assert.equal(container({ logPath: 'web/0.log', stopSignal: 65, args: ['line\nbreak'] }), null);
    assert.equal(container(withContext({ privileged: true }), privilegedPod), null);
    assert.equal(
      container(withResources({ cpuPeriod: '100000', cpuQuota: '-1', memoryLimitInBytes: '0', oomScoreAdj: '-1000' })),
      null,
    );
    assert.equal(
      container(withContext({ capabilities: { addCapabilities: ['ALL'], dropCapabilities: ['cap_mknod'] } })),
      null,
    );
    assert.equal(container(withContext({ namespaceOptions: { pid: 3, targetId: 'x' } })), null);
  });

  it('takes the sub path that kubelet gives all volumes of a pod with an image, and did not by older rules', () => {
    const config = { ...containerConfig, mounts: [{ containerPath: '/x', hostPath: '/h', imageSubPath: 'a' }] };
    assert.equal(validateContainerConfig(config, podConfig), null);
    assert.match(validateContainerConfig(config, podConfig, 11)?.message ?? '', /^mounts\.image_sub_path /);
  });

  it('has the user namespace of its pod, and so have its mounts', () => {
    const usernsOptions = { uids: mappings, gids: mappings };
    const config = (options: UserNamespace | undefined, mounts: ContainerConfig['mounts'] = []): ContainerConfig => ({
      ...withContext({ namespaceOptions: { ...(options && { usernsOptions: options }) } }),
      mounts,
    });
    const mount = { containerPath: '/x', hostPath: '/h', uidMappings: mappings, gidMappings: mappings };
    assert.equal(container(config(usernsOptions), usernsPod), null);
    assert.equal(container(config(usernsOptions, [mount]), usernsPod), null);
    for (const other of [undefined, { mode: 2 }, { uids: mappings, gids: [{ hostId: 65536, length: 65535 }] }]) {
      const failure = container(config(other), usernsPod);
      assert.equal(failure?.reason, 'InvalidField');
      assert.ok(failure.message.startsWith(USERNS), failure.message);
    }
    const strange = { ...mount, gidMappings: [{ hostId: 1, length: 1 }] };
    assert.match(
      container(config(usernsOptions, [strange]), usernsPod)?.message ?? '',
      /^mounts\.gidMappings at "\/x"/,
    );
    assert.equal(container(config({ mode: 2 })), null);
  });

  it('refuses a flood of mounts or devices', () => {
    const devices = Array.from({ length: 1001 }, (_, index) => ({ hostPath: `/dev/d${index}` }));
    assert.match(container({ devices })?.message ?? '', /^devices has more than 1000/);
    const mounts = Array.from({ length: 10_001 }, (_, index) => ({ containerPath: `/m${index}`, hostPath: '/h' }));
    assert.match(container({ mounts })?.message ?? '', /^mounts has more than 10000/);
  });
});
