/** Limits, cgroup paths, OOM scores, devices and sysctls. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LinuxContainerResources, PodSandboxConfig } from '../../../src/domain/model/cri.ts';
import type { DeviceFact } from '../../../src/domain/model/container-facts.ts';
import type { NodeFacts } from '../../../src/domain/model/node-facts.ts';
import { containerSpec } from '../../../src/domain/oci/container-spec.ts';
import { failureIn as refusalIn } from '../../../src/domain/oci/refuse.ts';
import { checkSwap, mergedResources, undoingResources } from '../../../src/domain/oci/resources.ts';
import type { SpecSettings } from '../../../src/domain/model/spec-settings.ts';
import {
  buildContainer,
  buildSandbox,
  CONTAINER_ID,
  containerInput,
  failureIn,
  nodeV1,
  nodeV2,
  podConfig,
  rootFacts,
  settings,
  withResources,
} from './support.ts';

const limits = (resources: LinuxContainerResources, node: NodeFacts = nodeV2) => {
  const { devices: _devices, ...rest } = buildContainer(withResources(resources), { node }).linux.resources;
  return rest;
};

const without = (controller: string, node: NodeFacts): NodeFacts => {
  const { [controller]: _gone, ...controllers } = node.cgroup.controllers;
  return { ...node, cgroup: { ...node.cgroup, controllers } };
};

describe('limits', () => {
  it('of zero are none', () => {
    assert.deepEqual(limits({}), {});
    assert.deepEqual(limits({ cpuShares: '0', cpuQuota: '0', memoryLimitInBytes: '0', unified: {} }), {});
  });

  it('on memory forbid swapping unless swap is asked for', () => {
    assert.deepEqual(limits({ memoryLimitInBytes: '1000' }).memory, { limit: 1000, swap: 1000 });
    assert.deepEqual(limits({ memoryLimitInBytes: '1000', memorySwapLimitInBytes: '2000' }).memory, {
      limit: 1000,
      swap: 2000,
    });
    assert.deepEqual(limits({ memoryLimitInBytes: '1000', memorySwapLimitInBytes: '-1' }).memory, {
      limit: 1000,
      swap: -1,
    });
    assert.deepEqual(limits({ memoryLimitInBytes: '1000', memorySwapLimitInBytes: '2000' }, nodeV1).memory, {
      limit: 1000,
    });
  });

  it('beyond what JSON holds exactly are as good as none', () => {
    const { memory } = limits({ memoryLimitInBytes: '9223372036854771712' });
    assert.equal(memory?.limit, Number.MAX_SAFE_INTEGER);
  });

  it('of shares stay within what the kernel takes', () => {
    assert.deepEqual(limits({ cpuShares: '1' }).cpu, { shares: 2 });
    assert.deepEqual(limits({ cpuShares: '9999999' }).cpu, { shares: 262144 });
    assert.deepEqual(limits({ cpuQuota: '-1', cpuPeriod: '100000' }).cpu, { quota: -1, period: 100000 });
  });

  it('are left out when their controller is missing, but for memory', () => {
    const all = {
      cpuShares: '10',
      cpusetCpus: '0',
      cpusetMems: '0-1',
      hugepageLimits: [{ pageSize: '2MB', limit: '1' }],
    };
    assert.deepEqual(limits(all, nodeV1), { cpu: { shares: 10 } });
    assert.deepEqual(limits(all, without('cpu', nodeV1)), {});
    assert.deepEqual(limits(all), {
      cpu: { shares: 10, cpus: '0', mems: '0-1' },
      hugepageLimits: [{ pageSize: '2MB', limit: 1 }],
    });
    const input = containerInput(withResources({ memoryLimitInBytes: '5' }), { node: without('memory', nodeV2) });
    assert.equal(failureIn(containerSpec(input)).reason, 'HostLacks');
  });

  it('on hugepages of a size the node has not are left out', () => {
    const hugepageLimits = [{ pageSize: '16GB', limit: '0' }, { pageSize: '1GB' }];
    assert.deepEqual(limits({ hugepageLimits }).hugepageLimits, [{ pageSize: '1GB', limit: 0 }]);
  });

  it('of cgroup v2 files need cgroup v2', () => {
    const unified = { 'memory.high': '100' };
    assert.deepEqual(limits({ unified }).unified, unified);
    const input = containerInput(withResources({ unified }), { node: nodeV1 });
    assert.match(failureIn(containerSpec(input)).message, /^linux\.resources\.unified needs cgroup v2/);
  });
});

describe('changed limits', () => {
  it('keep what is not set, entry by entry in lists and maps', () => {
    const current = {
      cpuShares: '512',
      cpuQuota: '1000',
      hugepageLimits: [{ pageSize: '2MB', limit: '1' }, { pageSize: '1GB' }],
      unified: { 'memory.high': '1', 'memory.low': '2' },
    };
    assert.deepEqual(mergedResources(current, {}), current);
    const changes = {
      cpuShares: '100',
      hugepageLimits: [{ pageSize: '2MB', limit: '5' }],
      unified: { 'memory.high': 'max' },
    };
    assert.deepEqual(mergedResources(current, changes), {
      cpuShares: '100',
      cpuQuota: '1000',
      hugepageLimits: [{ pageSize: '2MB', limit: '5' }, { pageSize: '1GB' }],
      unified: { 'memory.high': 'max', 'memory.low': '2' },
    });
  });

  it('are undone by what was before, and by the defaults where that was nothing', () => {
    const undone = { cpu: { shares: 10, quota: 5000, cpus: '0' }, memory: { limit: 5, swap: 5 } };
    assert.deepEqual(undoingResources({ cpu: { shares: 512 } }, undone), {
      cpu: { shares: 512, quota: -1 },
      memory: { limit: -1, swap: -1 },
    });
    assert.deepEqual(undoingResources({ memory: { limit: 7 } }, { cpu: { period: 1000 } }), {
      cpu: { period: 100_000 },
      memory: { limit: 7 },
    });
  });

  it('of swap below those of memory are refused', () => {
    const refused = (resources: LinuxContainerResources): string | null =>
      refusalIn(() => checkSwap('linux', resources))?.message ?? null;
    assert.match(refused({ memoryLimitInBytes: '9', memorySwapLimitInBytes: '8' }) ?? '', /memory_swap_limit_in_bytes/);
    assert.match(
      refused({ memoryLimitInBytes: '-1', memorySwapLimitInBytes: '8' }) ?? '',
      /memory_swap_limit_in_bytes/,
    );
    for (const swap of ['9', '10', '-1', '0'])
      assert.equal(refused({ memoryLimitInBytes: '9', memorySwapLimitInBytes: swap }), null);
    assert.equal(refused({ memorySwapLimitInBytes: '8' }), null);
  });
});

describe('cgroup paths', () => {
  const pathOf = (cgroupParent: string, cgroupDriver: SpecSettings['cgroupDriver']): string =>
    buildContainer(
      {},
      { sandboxConfig: { ...podConfig, linux: { cgroupParent } }, settings: { ...settings, cgroupDriver } },
    ).linux.cgroupsPath;

  it('are joined with cgroupfs', () => {
    assert.equal(pathOf('/kubepods/pod1', 'cgroupfs'), `/kubepods/pod1/${CONTAINER_ID}`);
    assert.equal(pathOf('kubepods//pod1/', 'cgroupfs'), `/kubepods/pod1/${CONTAINER_ID}`);
    assert.equal(pathOf('/a.slice/b.slice', 'cgroupfs'), `/a.slice/b.slice/${CONTAINER_ID}`);
    assert.equal(pathOf('', 'cgroupfs'), `/scribe/${CONTAINER_ID}`);
  });

  it('are units of a slice with systemd', () => {
    assert.equal(
      pathOf('/kubepods.slice/kubepods-pod1.slice', 'systemd'),
      `kubepods-pod1.slice:cri-scribe:${CONTAINER_ID}`,
    );
    assert.equal(pathOf('', 'systemd'), `system.slice:cri-scribe:${CONTAINER_ID}`);
    const input = containerInput(
      {},
      { sandboxConfig: { linux: { cgroupParent: '/plain' } }, settings: { ...settings, cgroupDriver: 'systemd' } },
    );
    assert.match(failureIn(containerSpec(input)).message, /^linux\.cgroup_parent .* no systemd slice/);
  });
});

describe('oom_score_adj', () => {
  const scoreOf = (oomScoreAdj: string, node: NodeFacts, restrictOomScoreAdj = false): number | undefined =>
    buildContainer(withResources({ oomScoreAdj }), { node, settings: { ...settings, restrictOomScoreAdj } }).process
      .oomScoreAdj;

  it('is what is asked for, unless the daemon cannot or may not lower it', () => {
    assert.equal(scoreOf('-900', { ...nodeV2, ownOomScoreAdj: 100 }), -900);
    assert.equal(scoreOf('-900', { ...nodeV2, ownOomScoreAdj: 100 }, true), 100);
    assert.equal(scoreOf('-900', nodeV1), 0);
    assert.equal(scoreOf('900', nodeV1), 900);
  });

  it('of the pause task is the lowest of a pod', () => {
    assert.equal(buildSandbox().process.oomScoreAdj, -998);
    assert.equal(buildSandbox(podConfig, { node: nodeV1 }).process.oomScoreAdj, 0);
  });
});

describe('devices', () => {
  const fact = (hostPath: string, path: string, type: DeviceFact['type'], minor: number): DeviceFact => ({
    ...{ hostPath, path, type, major: 10, minor, fileMode: 0o600, uid: 1, gid: 2 },
  });
  const devicesOf = (
    devices: readonly DeviceFact[],
    asked: readonly { hostPath: string; containerPath?: string; permissions?: string }[],
  ) => {
    const { linux } = buildContainer({ devices: asked }, { facts: { ...rootFacts, devices } });
    return { paths: linux.devices?.map(({ path }) => path), rules: linux.resources.devices };
  };

  it('of a directory keep their places below it', () => {
    const facts = [fact('/dev/x', '/dev/x/a', 'c', 1), fact('/dev/x', '/dev/x/b/c', 'b', 2)];
    const { paths, rules } = devicesOf(facts, [{ hostPath: '/dev/x', containerPath: '/dev/y', permissions: 'r' }]);
    assert.deepEqual(paths, ['/dev/y/a', '/dev/y/b/c']);
    assert.deepEqual(rules?.slice(-2), [
      { allow: true, type: 'c', major: 10, minor: 1, access: 'r' },
      { allow: true, type: 'b', major: 10, minor: 2, access: 'r' },
    ]);
    assert.deepEqual(rules[0], { allow: false, access: 'rwm' });
  });

  it('without a container path keep their own, and may be used in every way', () => {
    const { paths, rules } = devicesOf([fact('/dev/k', '/dev/k', 'c', 3)], [{ hostPath: '/dev/k' }]);
    assert.deepEqual([paths, rules?.at(-1)?.access], [['/dev/k'], 'rwm']);
  });

  it('that every OCI runtime allows by itself are named by the specs of older rules alone', () => {
    assert.deepEqual(buildContainer().linux.resources.devices, [{ allow: false, access: 'rwm' }]);
    const older = buildContainer({}, { settings: { ...settings, standardDeviceRules: true } });
    assert.deepEqual(older.linux.resources.devices?.at(-1), { allow: true, type: 'c', major: 136, access: 'rwm' });
  });

  it('that are not there are refused', () => {
    assert.equal(
      failureIn(containerSpec(containerInput({ devices: [{ hostPath: '/dev/gone' }] }))).reason,
      'HostLacks',
    );
  });
});

describe('sysctls', () => {
  const of = (linux: PodSandboxConfig['linux'], ports = true) =>
    buildSandbox(
      { ...podConfig, linux },
      { settings: { ...settings, enableUnprivilegedIcmp: true, enableUnprivilegedPorts: ports }, netnsPath: '/n' },
    ).linux.sysctl;

  it('of the settings come with a network of its own, and yield to the pod', () => {
    assert.deepEqual(of({}), {
      'net.ipv4.ip_unprivileged_port_start': '0',
      'net.ipv4.ping_group_range': '0 2147483647',
    });
    assert.equal(of({ sysctls: { 'net/ipv4/ping_group_range': '1 2' } })?.['net.ipv4.ping_group_range'], '1 2');
    assert.equal(of({ securityContext: { namespaceOptions: { network: 2 } } }), undefined);
  });

  it('may be written with slashes, and hold a dot then', () => {
    const sysctls = { 'net/ipv4/conf/eth0.100/rp_filter': '1', 'kernel.sem': '1 2 3 4' };
    assert.deepEqual(
      { ...of({ sysctls }, false), 'net.ipv4.ping_group_range': undefined },
      { 'net.ipv4.conf.eth0/100.rp_filter': '1', 'kernel.sem': '1 2 3 4', 'net.ipv4.ping_group_range': undefined },
    );
  });
});
