/** Each field of an NRI adjustment in the OCI spec of the container, what is refused, and what holds for all of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ContainerAdjustment, LinuxContainerAdjustment, NriResources } from '../../../src/domain/model/nri.ts';
import type { OciSpec } from '../../../src/domain/model/oci.ts';
import { type AdjustmentFacts, withAdjustmentApplied } from '../../../src/domain/nri/apply.ts';
import { adjustment } from '../../adapters/nri/messages/arbitrary.ts';
import { buildContainer, nodeV1, nodeV2 } from '../oci/support.ts';

const facts: AdjustmentFacts = { node: nodeV2 };
const base: OciSpec = buildContainer({
  envs: [
    { key: 'A', token: 'a' },
    { key: 'B', token: 'b' },
  ],
  annotations: { color: 'red' },
  linux: { resources: { memoryLimitInBytes: '1000000', cpuShares: '512', cpuQuota: '1000' } },
});

const adjusted = (adjust: ContainerAdjustment, from = base, around = facts): OciSpec => {
  const result = withAdjustmentApplied(from, adjust, around);
  assert.ok(result.ok, result.ok ? '' : result.failure.message);
  return result.value;
};
const refused = (adjust: ContainerAdjustment, around = facts): string => {
  const result = withAdjustmentApplied(base, adjust, around);
  assert.ok(!result.ok, 'it was not refused');
  return `${result.failure.reason}: ${result.failure.message}`;
};
const linux = (adjustment: LinuxContainerAdjustment): ContainerAdjustment => ({ linux: adjustment });
const limits = (resources: NriResources): ContainerAdjustment => linux({ resources });
const limitOf = (type: string, value: string) => ({ type, hard: value, soft: value });
const names = (spec: OciSpec) => spec.process.env.map((env) => (typeof env === 'string' ? env : `${env.name}=…`));

describe('an adjustment in the OCI spec', () => {
  it('that is empty changes nothing', () => {
    assert.equal(adjusted({}), base);
    assert.deepEqual(adjusted({ linux: { resources: {} } }), base);
  });

  it('annotations are set and taken away', () => {
    assert.equal(adjusted({ annotations: { size: 'big' } }).annotations?.['size'], 'big');
    const own = { ...base, annotations: { color: 'red', size: 'big' } };
    assert.deepEqual(adjusted({ annotations: { '-color': '', size: 'small' } }, own).annotations, { size: 'small' });
  });

  it('env is replaced in its place, added behind, and taken away without anything in its stead', () => {
    const before = names(base);
    const after = names(adjusted({ env: ['A=2', 'C=3', { name: 'KEY', token: 't' }] }));
    assert.deepEqual(
      after,
      [...before.map((entry) => (entry === 'A=…' ? 'A=2' : entry)), 'C=3', 'KEY=…'],
      'order and places are kept',
    );
    assert.deepEqual(
      names(adjusted({ env: ['-A'] })),
      before.filter((entry) => entry !== 'A=…'),
    );
  });

  it('arguments are replaced', () => {
    assert.deepEqual(adjusted({ args: ['walk'] }).process.args, ['walk']);
  });

  it('hooks are run after those that were there', () => {
    const first = adjusted({ hooks: { prestart: [{ path: '/a' }], poststop: [] } });
    assert.deepEqual(first.hooks, { prestart: [{ path: '/a' }] });
    assert.deepEqual(adjusted({ hooks: { prestart: [{ path: '/b', timeout: 2 }] } }, first).hooks, {
      prestart: [{ path: '/a' }, { path: '/b', timeout: 2 }],
    });
  });

  it('rlimits are added', () => {
    const { rlimits } = adjusted({
      rlimits: [{ type: 'RLIMIT_NOFILE', hard: '18446744073709551615', soft: '10' }],
    }).process;
    assert.deepEqual(rlimits?.at(-1), { type: 'RLIMIT_NOFILE', hard: Number.MAX_SAFE_INTEGER, soft: 10 });
  });

  it('an rlimit takes the place of the one of its type, as OCI runtimes are to refuse two; it did not by rules before 11', () => {
    const first = adjusted({ rlimits: [limitOf('RLIMIT_NOFILE', '1024'), limitOf('RLIMIT_CORE', '0')] });
    const second = { rlimits: [limitOf('RLIMIT_NOFILE', '2048')] };
    const [nofile, core] = [...(adjusted(second, first).process.rlimits ?? [])];
    assert.deepEqual([nofile?.soft, core?.type], [2048, 'RLIMIT_CORE']);
    assert.equal(adjusted(second, first).process.rlimits?.length, 2);
    assert.equal(adjusted(second, first, { ...facts, doublesRlimits: true }).process.rlimits?.length, 3);
  });

  it('mounts are replaced by destination, taken away, and sorted by depth', () => {
    const bind = (destination: string, ...options: string[]) => ({
      destination,
      type: 'bind',
      source: '/srv',
      options: ['rbind', ...options],
    });
    const spec = adjusted({ mounts: [bind('/a/b/c'), bind('/a/'), bind('/proc')] });
    const destinations = spec.mounts.map(({ destination }) => destination);
    assert.ok(destinations.indexOf('/a/') < destinations.indexOf('/a/b/c'));
    assert.equal(spec.mounts.find(({ destination }) => destination === '/proc')?.source, '/srv');
    assert.equal(destinations.filter((destination) => destination === '/proc').length, 1);
    const without = adjusted({ mounts: [bind('-/a')] }, spec);
    assert.deepEqual(
      without.mounts.map(({ destination }) => destination),
      destinations.filter((destination) => destination !== '/a/'),
    );
    assert.equal(spec.linux.rootfsPropagation, base.linux.rootfsPropagation);
    assert.equal(adjusted({ mounts: [bind('/s', 'rslave')] }).linux.rootfsPropagation, 'rslave');
    assert.equal(
      adjusted({ mounts: [bind('/s', 'rshared'), bind('/t', 'rslave')] }).linux.rootfsPropagation,
      'rshared',
    );
  });

  it('devices are made and allowed, replaced by path, and taken away', () => {
    const device = (path: string, minor: number) => ({ path, type: 'c' as const, major: 10, minor });
    const spec = adjusted(linux({ devices: [device('/dev/fuse', 229)] }));
    assert.deepEqual(spec.linux.devices?.at(-1), device('/dev/fuse', 229));
    const rule = { allow: true, type: 'c', major: 10, minor: 229, access: 'rwm' };
    assert.deepEqual(spec.linux.resources.devices?.at(-1), rule);
    assert.deepEqual(adjusted(linux({ devices: [device('/dev/fuse', 1)] }), spec).linux.devices, [
      device('/dev/fuse', 1),
    ]);
    assert.equal(adjusted(linux({ devices: [device('-/dev/fuse', 0)] }), spec).linux.devices, undefined);
  });

  it('CDI devices bring their edits', () => {
    const spec = adjusted({ cdiDevices: ['vendor.com/net=eth0'] }, base, {
      ...facts,
      cdi: [{ deviceNodes: [{ path: '/dev/gpu', type: 'c', major: 5, minor: 6 }] }],
    });
    assert.equal(spec.linux.devices?.at(-1)?.path, '/dev/gpu');
  });

  it('cgroups path, OOM score, I/O priority, scheduler, seccomp and memory policy are set', () => {
    const ioPriority = { class: 'IOPRIO_CLASS_BE', priority: 3 };
    const seccompPolicy = { defaultAction: 'SCMP_ACT_ERRNO', defaultErrnoRet: 38 };
    const memoryPolicy = { mode: 'MPOL_INTERLEAVE', nodes: '0-1', flags: ['MPOL_F_STATIC_NODES'] };
    const spec = adjusted(
      linux({
        cgroupsPath: '/x/y',
        oomScoreAdj: 0,
        ioPriority,
        seccompPolicy,
        memoryPolicy,
        scheduler: { policy: 'SCHED_DEADLINE', runtimeNs: '10', deadlineNs: '20', periodNs: '30' },
      }),
    );
    assert.equal(spec.linux.cgroupsPath, '/x/y');
    assert.equal(spec.process.oomScoreAdj, 0);
    assert.deepEqual(spec.process.ioPriority, ioPriority);
    assert.deepEqual(spec.process.scheduler, { policy: 'SCHED_DEADLINE', runtime: 10, deadline: 20, period: 30 });
    assert.deepEqual(spec.linux.seccomp, seccompPolicy);
    assert.deepEqual(spec.linux.memoryPolicy, memoryPolicy);
  });

  it('namespaces are set and taken away, and one that is none is refused', () => {
    const spec = adjusted(linux({ namespaces: [{ type: 'ipc', path: '/proc/1/ns/ipc' }, { type: '-pid' }] }));
    assert.deepEqual(
      spec.linux.namespaces.find(({ type }) => type === 'ipc'),
      { type: 'ipc', path: '/proc/1/ns/ipc' },
    );
    assert.ok(!spec.linux.namespaces.some(({ type }) => type === 'pid'));
    assert.match(refused(linux({ namespaces: [{ type: 'dreams' }] })), /^InvalidField: .*"dreams"/);
  });

  it('sysctls and network devices are set and taken away', () => {
    const spec = adjusted(linux({ sysctl: { a: '1', b: '2' }, netDevices: { eth1: { name: 'net1' } } }));
    assert.deepEqual(spec.linux.sysctl, { ...base.linux.sysctl, a: '1', b: '2' });
    assert.deepEqual(spec.linux.netDevices, { eth1: { name: 'net1' } });
    const without = adjusted(linux({ sysctl: { '-a': '' }, netDevices: { '-eth1': { name: '' } } }), spec);
    assert.deepEqual([without.linux.sysctl?.['a'], without.linux.netDevices], [undefined, {}]);
  });

  it('every limit is set beside those that stand', () => {
    const { resources } = adjusted(
      limits({
        memory: {
          reservation: '5',
          kernel: '6',
          kernelTcp: '7',
          swappiness: '8',
          disableOomKiller: true,
          useHierarchy: true,
        },
        cpu: { quota: '9', period: '10', realtimeRuntime: '11', realtimePeriod: '12', cpus: '0-1', mems: '0' },
        pids: { limit: '-1' },
        unified: { 'memory.high': '13' },
        hugepageLimits: [{ pageSize: '2MB', limit: '14' }],
      }),
    ).linux;
    assert.deepEqual(resources.memory, {
      ...base.linux.resources.memory,
      ...{ reservation: 5, kernel: 6, kernelTCP: 7, swappiness: 8, disableOOMKiller: true, useHierarchy: true },
    });
    assert.deepEqual(resources.cpu, {
      ...{ shares: 512, quota: 9, period: 10, realtimeRuntime: 11, realtimePeriod: 12, cpus: '0-1', mems: '0' },
    });
    assert.deepEqual(resources.pids, { limit: -1 });
    assert.deepEqual(resources.unified, { 'memory.high': '13' });
    assert.deepEqual(resources.hugepageLimits, [{ pageSize: '2MB', limit: 14 }]);
  });

  it('a memory limit takes swap along where swap is counted, unless the plugin says more', () => {
    assert.deepEqual(adjusted(limits({ memory: { limit: '7' } })).linux.resources.memory, { limit: 7, swap: 7 });
    assert.deepEqual(adjusted(limits({ memory: { limit: '7', swap: '9' } })).linux.resources.memory, {
      limit: 7,
      swap: 9,
    });
  });

  it('limits of huge pages are left out where the controller is missing', () => {
    const adjust = limits({ hugepageLimits: [{ pageSize: '2MB', limit: '14' }] });
    assert.equal(adjusted(adjust, base, { node: nodeV1 }).linux.resources.hugepageLimits, undefined);
  });

  it('classes are those of the node, and one that it cannot give is refused', () => {
    const blockIO = [{ devices: null, weight: 50 }];
    const spec = adjusted(limits({ blockioClass: 'slow' }), base, { ...facts, blockIO });
    assert.deepEqual(spec.linux.resources.blockIO, { weight: 50 });
    assert.match(refused(limits({ blockioClass: 'slow' })), /^HostLacks: .*"slow" of block I\/O/);
    const withRdt = { ...facts, node: { ...nodeV2, resctrl: true } };
    const gold = adjusted(limits({ rdtClass: 'gold' }), base, withRdt);
    assert.deepEqual(gold.linux.intelRdt, { closID: 'gold' });
    const schemata = ['L3:0=f'];
    assert.deepEqual(adjusted(linux({ rdt: { schemata, enableMonitoring: true } }), gold, withRdt).linux.intelRdt, {
      closID: 'gold',
      schemata,
      enableMonitoring: true,
    });
    assert.equal(adjusted(linux({ rdt: { remove: true } }), gold, withRdt).linux.intelRdt, undefined);
    assert.match(refused(limits({ rdtClass: 'gold' })), /^HostLacks: .*resctrl/);
  });

  it('what the protocol calls none takes away what there was', () => {
    const withRdt = { ...facts, node: { ...nodeV2, resctrl: true }, blockIO: [{ devices: null, weight: 50 }] };
    const set = adjusted(
      linux({
        ioPriority: { class: 'IOPRIO_CLASS_BE', priority: 3 },
        scheduler: { policy: 'SCHED_BATCH' },
        resources: { rdtClass: 'gold', blockioClass: 'slow' },
      }),
      base,
      withRdt,
    );
    const none = adjusted(
      linux({
        ioPriority: { class: 'IOPRIO_CLASS_NONE', priority: 0 },
        scheduler: { policy: 'SCHED_NONE' },
        resources: { rdtClass: '', blockioClass: '' },
      }),
      set,
    );
    assert.notDeepEqual(set, base);
    assert.deepEqual(none, base);
  });

  it('a memory limit of 0 says nothing', () => {
    const { memory } = adjusted(limits({ memory: { limit: '0', reservation: '5' } })).linux.resources;
    assert.deepEqual(memory, { ...base.linux.resources.memory, reservation: 5 });
  });

  it('is applied or refused, the same each time, and leaves the spec that it is applied to as it was', () => {
    const before = JSON.stringify(base);
    const rich = { ...facts, node: { ...nodeV2, resctrl: true }, blockIO: [{ devices: null, weight: 50 }] };
    fc.assert(
      fc.property(adjustment, (adjust) => {
        const result = withAdjustmentApplied(base, adjust, rich);
        assert.ok(result.ok, result.ok ? '' : result.failure.message);
        assert.deepEqual(withAdjustmentApplied(base, adjust, rich), result);
        assert.equal(JSON.stringify(base), before);
        const { annotations = {}, mounts, process, linux: spec } = result.value;
        const keys = [
          ...Object.keys({ ...annotations, ...spec.sysctl, ...spec.netDevices }),
          ...mounts.map(({ destination }) => destination),
          ...(spec.devices ?? []).map(({ path }) => path),
          ...spec.namespaces.map(({ type }) => type),
          ...process.env.map((env) => (typeof env === 'string' ? env : env.name)),
        ];
        assert.deepEqual(
          keys.filter((key) => key.startsWith('-')),
          [],
          'no mark is left',
        );
      }),
    );
  });
});
