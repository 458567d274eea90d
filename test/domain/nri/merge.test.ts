/** What several NRI plugins change in one container: one row per rule of ownership, and what holds for all of them. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type ContainerAdjustment,
  type LinuxContainerAdjustment,
  NRI_FIELDS,
  type NriResources,
} from '../../../src/domain/model/nri.ts';
import { type Result, succeeded } from '../../../src/domain/model/result.ts';
import { type Merged, NOTHING_MERGED, withAdjustment } from '../../../src/domain/nri/merge.ts';
import { adjustment } from '../../adapters/nri/messages/arbitrary.ts';

const [FIRST, SECOND, THIRD] = ['10-first', '20-second', '30-third'] as const;

const mergeAll = (answers: readonly (readonly [plugin: string, answer: ContainerAdjustment])[]): Result<Merged> =>
  answers.reduce<Result<Merged>>(
    (result, [plugin, answer]) => (result.ok ? withAdjustment(result.value, plugin, answer) : result),
    succeeded(NOTHING_MERGED),
  );

const merged = (...answers: (readonly [string, ContainerAdjustment])[]): Merged => {
  const result = mergeAll(answers);
  assert.ok(result.ok, result.ok ? '' : result.failure.message);
  return result.value;
};

const conflict = (...answers: (readonly [string, ContainerAdjustment])[]): string => {
  const result = mergeAll(answers);
  assert.ok(!result.ok, 'there is no conflict');
  assert.equal(result.failure.reason, 'PluginConflict');
  return result.failure.message;
};

const linux = (adjustment: LinuxContainerAdjustment): ContainerAdjustment => ({ linux: adjustment });
const limits = (resources: NriResources): ContainerAdjustment => linux({ resources });
const device = (path: string) => ({ path, type: 'c' as const, major: 1, minor: 3 });
const mount = (destination: string) => ({ destination, source: '/srv', options: ['bind'] });

/** Every field that has one owner, with what conflicts of it are called. */
const owned: readonly (readonly [what: string, answer: ContainerAdjustment])[] = [
  ['Annotations color', { annotations: { color: 'red' } }],
  ['Mounts /data', { mounts: [mount('/data')] }],
  ['Env A', { env: ['A=1'] }],
  ['Env SECRET', { env: [{ name: 'SECRET', token: 't' }] }],
  ['Args', { args: ['run'] }],
  ['Rlimits RLIMIT_NOFILE', { rlimits: [{ type: 'RLIMIT_NOFILE', hard: '2', soft: '1' }] }],
  ['CdiDevices vendor.com/net=eth0', { cdiDevices: ['vendor.com/net=eth0'] }],
  ['Devices /dev/x', linux({ devices: [device('/dev/x')] })],
  ['CgroupsPath', linux({ cgroupsPath: '/a' })],
  ['OomScoreAdj', linux({ oomScoreAdj: 0 })],
  ['IoPriority', linux({ ioPriority: { class: 'IOPRIO_CLASS_RT', priority: 1 } })],
  ['SeccompPolicy', linux({ seccompPolicy: { defaultAction: 'SCMP_ACT_ALLOW' } })],
  ['Namespace ipc', linux({ namespaces: [{ type: 'ipc' }] })],
  ['Sysctl net.core.somaxconn', linux({ sysctl: { 'net.core.somaxconn': '1' } })],
  ['LinuxNetDevices eth1', linux({ netDevices: { eth1: { name: 'net1' } } })],
  ['LinuxSched', linux({ scheduler: { policy: 'SCHED_BATCH' } })],
  ['RdtClosID', linux({ rdt: { closId: 'gold' } })],
  ['RdtSchemata', linux({ rdt: { schemata: ['L3:0=f'] } })],
  ['RdtEnableMonitoring', linux({ rdt: { enableMonitoring: false } })],
  ['MemoryPolicy', linux({ memoryPolicy: { mode: 'MPOL_BIND', nodes: '0' } })],
  ['MemLimit', limits({ memory: { limit: '1' } })],
  ['MemReservation', limits({ memory: { reservation: '1' } })],
  ['MemSwapLimit', limits({ memory: { swap: '1' } })],
  ['MemKernelLimit', limits({ memory: { kernel: '1' } })],
  ['MemTCPLimit', limits({ memory: { kernelTcp: '1' } })],
  ['MemSwappiness', limits({ memory: { swappiness: '0' } })],
  ['MemDisableOomKiller', limits({ memory: { disableOomKiller: false } })],
  ['MemUseHierarchy', limits({ memory: { useHierarchy: false } })],
  ['CPUShares', limits({ cpu: { shares: '2' } })],
  ['CPUQuota', limits({ cpu: { quota: '2' } })],
  ['CPUPeriod', limits({ cpu: { period: '2' } })],
  ['CPURealtimeRuntime', limits({ cpu: { realtimeRuntime: '2' } })],
  ['CPURealtimePeriod', limits({ cpu: { realtimePeriod: '2' } })],
  ['CPUSetCPUs', limits({ cpu: { cpus: '0' } })],
  ['CPUSetMems', limits({ cpu: { mems: '0' } })],
  ['PidsLimit', limits({ pids: { limit: '5' } })],
  ['HugepageLimits 2MB', limits({ hugepageLimits: [{ pageSize: '2MB', limit: '1' }] })],
  ['BlockioClass', limits({ blockioClass: 'slow' })],
  ['RdtClass', limits({ rdtClass: 'gold' })],
  ['CgroupsUnified memory.high', limits({ unified: { 'memory.high': '1' } })],
];

/** What takes away what stands at the same place, where something can. */
const removals: readonly (readonly [what: string, answer: ContainerAdjustment])[] = [
  ['Annotations color', { annotations: { '-color': '' } }],
  ['Mounts /data', { mounts: [mount('-/data')] }],
  ['Env A', { env: ['-A='] }],
  ['Env SECRET', { env: ['-SECRET'] }],
  ['Devices /dev/x', linux({ devices: [device('-/dev/x')] })],
  ['Sysctl net.core.somaxconn', linux({ sysctl: { '-net.core.somaxconn': '' } })],
  ['LinuxNetDevices eth1', linux({ netDevices: { '-eth1': { name: '' } } })],
  ['RdtClosID', linux({ rdt: { remove: true } })],
  ['RdtSchemata', linux({ rdt: { remove: true } })],
  ['RdtEnableMonitoring', linux({ rdt: { remove: true } })],
];

const answerOf = (what: string): ContainerAdjustment => owned.find(([name]) => name === what)?.[1] ?? {};

describe('what plugins change in a container', () => {
  for (const [what, answer] of owned)
    it(`${what} has one owner: two that set it are a conflict, which names both and it`, () => {
      assert.deepEqual(merged([FIRST, answer]).adjust, answer);
      const message = conflict([FIRST, answer], [SECOND, {}], [THIRD, answer]);
      assert.ok(message.includes(`plugins "${FIRST}" and "${THIRD}" both tried to set ${what}:`), message);
    });

  for (const [what, removal] of removals)
    it(`${what} can be set again by whoever took it away, and by the next after a pure removal`, () => {
      const answer = answerOf(what);
      const { adjust } = merged([FIRST, answer], [SECOND, removal], [THIRD, answer]);
      assert.deepEqual(merged([FIRST, answer], [SECOND, removal]).adjust, removal, 'what was taken away is marked');
      const again = what.startsWith('Rdt') ? { linux: { rdt: { remove: true, ...answer.linux?.rdt } } } : answer;
      assert.deepEqual(adjust, again);
    });

  it('a plugin may take away and set in one answer', () => {
    const { adjust, owners } = merged([FIRST, { env: ['A=1', 'B=1'] }], [SECOND, { env: ['-A', 'A=2'] }]);
    assert.deepEqual(adjust, { env: ['B=1', 'A=2'] });
    assert.deepEqual(owners.compound, { Env: { A: SECOND, B: FIRST } });
    assert.match(
      conflict([FIRST, { env: ['-A', 'A=2'] }], [SECOND, { env: ['A=3'] }]),
      /"10-first" and "20-second".*Env A/,
    );
  });

  it('a plugin that only took away holds nobody up, and is told as such', () => {
    const { owners } = merged([FIRST, { env: ['-A'] }]);
    assert.deepEqual(owners.compound, { Env: { A: `-${FIRST}` } });
  });

  it('a plugin that sets the same key twice is in conflict with itself', () => {
    assert.match(conflict([FIRST, { env: ['A=1', 'A=2'] }]), /"10-first" and "10-first" both tried to set Env A/);
  });

  it('whoever takes away a namespace owns it too', () => {
    const gone = linux({ namespaces: [{ type: '-ipc' }] });
    assert.match(conflict([FIRST, gone], [SECOND, answerOf('Namespace ipc')]), /Namespace ipc/);
    assert.match(conflict([FIRST, answerOf('Namespace ipc')], [SECOND, gone]), /Namespace ipc/);
  });

  it('arguments that begin with an empty one take the place of others', () => {
    const { adjust, owners } = merged([FIRST, { args: ['run'] }], [SECOND, { args: ['', 'walk', 'on'] }]);
    assert.deepEqual(adjust, { args: ['walk', 'on'] });
    assert.deepEqual(owners.simple, { Args: SECOND });
  });

  it('hooks and rules of devices are put one behind the other, and hooks have several owners', () => {
    const hook = (path: string): ContainerAdjustment => ({ hooks: { prestart: [{ path }] } });
    const { adjust, owners } = merged([FIRST, hook('/a')], [SECOND, hook('/b')]);
    assert.deepEqual(adjust, { hooks: { prestart: [{ path: '/a' }, { path: '/b' }] } });
    assert.deepEqual(owners.simple, { OciHooks: `${FIRST},${SECOND}` });
    const rule = limits({ devices: [{ allow: true, type: 'c', access: 'r' }] });
    assert.equal(merged([FIRST, rule], [SECOND, rule]).adjust.linux?.resources?.devices?.length, 2);
  });

  const answers = fc.array(
    fc.constantFrom(...owned, ...removals).map(([, answer]) => answer),
    { maxLength: 6 },
  );
  const plugins = (list: readonly ContainerAdjustment[]) =>
    list.map((answer, index) => [`${index + 10}-p`, answer] as const);

  it('is the same for the same answers in the same order, and nothing that is empty changes it', () => {
    fc.assert(
      fc.property(answers, (list) => {
        const once = mergeAll(plugins(list));
        assert.deepEqual(mergeAll(plugins(list)), once);
        const [first = {}] = list;
        const padded = list.length === 0 ? [] : [...plugins([first]), ['10-q', {}] as const, ...plugins(list).slice(1)];
        assert.deepEqual(mergeAll(padded), once);
      }),
    );
  });

  it('leaves what was merged before as it was', () => {
    fc.assert(
      fc.property(answers, (list) => {
        const before = mergeAll(plugins(list));
        if (!before.ok) return;
        const text = JSON.stringify(before.value);
        for (const [, answer] of [...owned, ...removals]) withAdjustment(before.value, '99-last', answer);
        assert.equal(JSON.stringify(before.value), text);
      }),
    );
  });

  it('is what plugins say one after the other: whoever comes later takes away, or is the one in conflict', () => {
    fc.assert(
      fc.property(fc.constantFrom(...removals), ([what, removal]) => {
        const answer = answerOf(what);
        const first = merged([FIRST, answer], [SECOND, removal]);
        const last = merged([FIRST, removal], [SECOND, answer]);
        assert.deepEqual(first.adjust, removal, 'taken away after it was set');
        assert.notDeepEqual(last.adjust, removal, 'set after it was taken away');
        const [one, other] = [conflict([FIRST, answer], [SECOND, answer]), conflict([SECOND, answer], [FIRST, answer])];
        assert.ok(one.includes(`"${FIRST}" and "${SECOND}"`));
        assert.ok(other.includes(`"${SECOND}" and "${FIRST}"`));
      }),
    );
  });

  it('is in conflict, or has all that every plugin said, with an owner for each field of it', () => {
    fc.assert(
      fc.property(adjustment, adjustment, (one, other) => {
        const result = mergeAll([
          [FIRST, one],
          [SECOND, other],
        ]);
        if (!result.ok) {
          assert.match(result.failure.message, /^NRI plugins "\d\d-\w+" and "\d\d-\w+" both tried to set \w+/);
          return;
        }
        const { adjust, owners } = result.value;
        for (const field of [...Object.keys(one), ...Object.keys(other)]) assert.ok(field in adjust, field);
        const names = [...Object.keys(owners.simple), ...Object.keys(owners.compound)];
        assert.ok(names.every((name) => name in NRI_FIELDS));
        const claimed = [
          ...Object.values(owners.simple),
          ...Object.values(owners.compound).flatMap((keys) => Object.values(keys)),
        ];
        assert.ok(claimed.every((owner) => /^-?(10-first|20-second)(,20-second)?$/.test(String(owner))));
      }),
    );
  });
});
