/** What plugins answer: back from the wire as it was meant, without secrets, and refused where it cannot be. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  createContainerAnswer,
  stopContainerAnswer,
  synchronizeAnswer,
  updateContainerAnswer,
  updateContainersRequest,
  validationAnswer,
} from '../../../../src/adapters/nri/messages/from-wire.ts';
import { adjustmentToWire, updateToWire } from '../../../../src/adapters/nri/messages/to-wire.ts';
import type { ContainerAdjustment } from '../../../../src/domain/model/nri.ts';
import type { Result } from '../../../../src/domain/model/result.ts';
import * as wire from '../../../../src/wire/nri/api.ts';
import { adjustment, resources, sent, tokenOf, valueOf } from './arbitrary.ts';

const PLUGIN = '10-odd';

function value<T>(result: Result<T>): T {
  if (!result.ok) assert.fail(result.failure.message);
  return result.value;
}

const answered = (adjust: wire.ContainerAdjustment | undefined): Result<{ readonly adjust?: ContainerAdjustment }> =>
  createContainerAnswer(PLUGIN, { adjust, update: [], evict: [] }, tokenOf);

describe('adjustments', () => {
  it('come back from the wire as they were, field by field', () => {
    fc.assert(
      fc.property(adjustment, (adjust) => {
        const message = sent(wire.ContainerAdjustment, adjustmentToWire(adjust, valueOf));
        assert.deepEqual(value(answered(message)), { hook: 'CreateContainer', adjust });
      }),
      { numRuns: 300 },
    );
  });

  it('that are empty say nothing', () => {
    const empty = adjustmentToWire({}, valueOf);
    const linux = adjustmentToWire({ linux: { resources: { memory: {}, cpu: {} } } }, valueOf);
    for (const adjust of [undefined, empty, linux])
      assert.deepEqual(value(answered(adjust)), { hook: 'CreateContainer' });
  });

  it('C12: hold tokens for env values, arguments and the env of hooks, and the values nowhere', () => {
    const kept: string[] = [];
    const result = createContainerAnswer(
      PLUGIN,
      {
        adjust: {
          ...adjustmentToWire({}, valueOf),
          env: [
            { key: 'PASSWORD', value: 's3cr3t-1' },
            { key: '-GONE', value: 's3cr3t-2' },
            { key: 'EMPTY', value: '' },
          ],
          args: ['', 's3cr3t-3'],
          hooks: {
            ...hooksMessage(),
            prestart: [{ path: '/hook', args: ['hook'], env: ['KEY=s3cr3t-4=5', 'NAME'], timeout: undefined }],
          },
        },
        update: [],
        evict: [],
      },
      (secret) => `token${kept.push(secret)}`,
    );
    const answer = value(result);
    assert.deepEqual(kept, ['s3cr3t-1', 's3cr3t-4=5', 's3cr3t-3']);
    assert.ok(!JSON.stringify(answer).includes('s3cr3t'));
    assert.deepEqual(answer.adjust, {
      env: [{ name: 'PASSWORD', token: 'token1' }, '-GONE', 'EMPTY='],
      hooks: { prestart: [{ path: '/hook', args: ['hook'], env: [{ name: 'KEY', token: 'token2' }, 'NAME'] }] },
      args: ['', { token: 'token3' }],
    });
  });
});

const hooksMessage = (): wire.Hooks => ({
  prestart: [],
  createRuntime: [],
  createContainer: [],
  startContainer: [],
  poststart: [],
  poststop: [],
});

describe('updates and evictions', () => {
  it('come back from the wire as they were', () => {
    fc.assert(
      fc.property(resources, fc.boolean(), (some, ignored) => {
        const update = { containerId: 'c', resources: some, ...(ignored ? { ignoreFailure: true as const } : {}) };
        const message = sent(wire.ContainerUpdate, updateToWire(update));
        const { answer } = value(synchronizeAnswer(PLUGIN, [message]));
        assert.deepEqual(answer, { hook: 'Synchronize', updates: [update] });
      }),
    );
  });

  it('are taken from every answer that may have them', () => {
    const update = [updateToWire({ containerId: 'c' })];
    const evict = [{ containerId: 'd', reason: 'too loud' }];
    const both = { updates: [{ containerId: 'c' }], evictions: evict };
    assert.deepEqual(value(updateContainerAnswer(PLUGIN, { update, evict })), { hook: 'UpdateContainer', ...both });
    assert.deepEqual(value(updateContainersRequest(PLUGIN, { update, evict })), { ...both, misfits: [] });
    const nothing = { updates: [], evictions: [], misfits: [] };
    assert.deepEqual(value(updateContainersRequest(PLUGIN, { update: [], evict: [] })), nothing);
    assert.deepEqual(value(stopContainerAnswer(PLUGIN, { update })), { hook: 'StopContainer', updates: both.updates });
    assert.deepEqual(value(createContainerAnswer(PLUGIN, { adjust: undefined, update, evict }, tokenOf)), {
      hook: 'CreateContainer',
      ...both,
    });
  });

  it('that nobody asked for, or in reply to Synchronize, are refused one by one', () => {
    const update = ['a', '', 'c'].map((containerId) => updateToWire({ containerId }));
    const synchronized = value(synchronizeAnswer(PLUGIN, update));
    assert.deepEqual(synchronized.answer, {
      hook: 'Synchronize',
      updates: [{ containerId: 'a' }, { containerId: 'c' }],
    });
    assert.match(synchronized.misfits[0]?.failure.message ?? '', /an answer to Synchronize with update\[1\]/);
    const { updates, misfits } = value(updateContainersRequest(PLUGIN, { update, evict: [] }));
    assert.deepEqual(updates, [{ containerId: 'a' }, { containerId: 'c' }]);
    assert.deepEqual(
      misfits.map((misfit) => misfit.update),
      [update[1]],
    );
    assert.match(
      misfits[0]?.failure.message ?? '',
      /sent a request for UpdateContainers with update\[1\]\.container_id/,
    );
    const evict = [{ containerId: '', reason: 'too loud' }];
    assert.match(messageOf(updateContainersRequest(PLUGIN, { update, evict })), /evict\[0\]\.container_id/);
  });

  it('without a container, or more than any node has containers, are refused', () => {
    const nobody = stopContainerAnswer(PLUGIN, { update: [updateToWire({ containerId: '' })] });
    assert.match(messageOf(nobody), /^NRI plugin "10-odd" sent .* update\[0\]\.container_id, which is empty/);
    const flood = Array.from({ length: 10_001 }, () => updateToWire({ containerId: 'c' }));
    assert.match(messageOf(synchronizeAnswer(PLUGIN, flood)), /with update, which has 10001 entries/);
  });
});

it('a validator rejects with its reason, or with words that it gave none', () => {
  const answer = (reject: boolean, reason: string) => validationAnswer('20-strict', { reject, reason });
  assert.deepEqual(answer(false, 'fine'), { hook: 'ValidateContainerAdjustment' });
  assert.deepEqual(answer(true, 'no hooks').rejected, { reason: 'no hooks' });
  assert.deepEqual(answer(true, '').rejected, { reason: 'plugin "20-strict" gave no reason' });
});

function messageOf(result: Result<unknown>): string {
  if (result.ok) assert.fail('it was not refused');
  assert.equal(result.failure.reason, 'PluginInvalid');
  return result.failure.message;
}

const base = (): wire.ContainerAdjustment =>
  adjustmentToWire({ linux: { resources: { memory: {}, cpu: {} } } }, valueOf);
const linuxBase = (): wire.LinuxContainerAdjustment => base().linux ?? assert.fail();
const linux = (more: Partial<wire.LinuxContainerAdjustment>) => ({ linux: { ...linuxBase(), ...more } });
const limits = (more: Partial<wire.LinuxResources>) => {
  const before = linuxBase().resources ?? assert.fail();
  return linux({ resources: { ...before, ...more } });
};
const memory = (more: Partial<wire.LinuxMemory>) =>
  limits({ memory: { ...(linuxBase().resources?.memory ?? assert.fail()), ...more } });
const cpu = (more: Partial<wire.LinuxCPU>) =>
  limits({ cpu: { ...(linuxBase().resources?.cpu ?? assert.fail()), ...more } });
const device = (more: Partial<wire.LinuxDevice>): wire.LinuxDevice => ({
  path: '/dev/x',
  type: 'c',
  major: '1',
  minor: '3',
  fileMode: undefined,
  uid: undefined,
  gid: undefined,
  ...more,
});
const scheduler: wire.LinuxScheduler = {
  policy: 1,
  nice: 0,
  priority: 0,
  flags: [],
  runtime: '0',
  deadline: '0',
  period: '0',
};
const seccomp = adjustmentToWire({ linux: { seccompPolicy: { defaultAction: 'SCMP_ACT_ALLOW' } } }, valueOf).linux
  ?.seccompPolicy;
const many = <T>(one: T): T[] => Array.from({ length: 4_097 }, () => one);

/** What no plugin may answer, and what of it is named. */
const bad: readonly (readonly [field: string, adjust: Partial<wire.ContainerAdjustment>])[] = [
  ['adjust.annotations["a"]', { annotations: { a: '\0' } }],
  ['adjust.annotations', { annotations: Object.fromEntries(many('').map((_, index) => [String(index), ''])) }],
  ['adjust.mounts[0].destination', { mounts: [{ destination: 'here', type: '', source: '', options: [] }] }],
  ['adjust.mounts[0].destination', { mounts: [{ destination: '-', type: '', source: '', options: [] }] }],
  ['adjust.mounts', { mounts: many({ destination: '/a', type: '', source: '', options: [] }) }],
  [
    'adjust.env[1].key',
    {
      env: [
        { key: 'A', value: '' },
        { key: 'A=B', value: '' },
      ],
    },
  ],
  ['adjust.env[0].key', { env: [{ key: '', value: '' }] }],
  ['adjust.env[0].value', { env: [{ key: 'A', value: 'x'.repeat(131_072) }] }],
  ['adjust.env[0].value', { env: [{ key: 'A', value: 'a\0b' }] }],
  ['adjust.args[1]', { args: ['', 'a\0'] }],
  [
    'adjust.hooks.poststop[0].path',
    { hooks: { ...hooksMessage(), poststop: [{ path: 'x', args: [], env: [], timeout: undefined }] } },
  ],
  [
    'adjust.hooks.prestart[0].timeout',
    { hooks: { ...hooksMessage(), prestart: [{ path: '/x', args: [], env: [], timeout: { value: '-1' } }] } },
  ],
  ['adjust.rlimits[0].type', { rlimits: [{ type: 'NOFILE', hard: '1', soft: '1' }] }],
  ['adjust.rlimits[0].soft', { rlimits: [{ type: 'RLIMIT_NOFILE', hard: '1', soft: '2' }] }],
  ['adjust.CDI_devices[0].name', { CDIDevices: [{ name: '\0' }] }],
  ['adjust.linux.devices[0].path', linux({ devices: [device({ path: 'x' })] })],
  ['adjust.linux.devices[0].type', linux({ devices: [device({ type: 'z' })] })],
  ['adjust.linux.devices[0].major', linux({ devices: [device({ major: '-1' })] })],
  ['adjust.linux.devices[0].minor', linux({ devices: [device({ minor: '4294967296' })] })],
  ['adjust.linux.resources.memory.limit', memory({ limit: { value: '-2' } })],
  ['adjust.linux.resources.memory.swappiness', memory({ swappiness: { value: '101' } })],
  ['adjust.linux.resources.memory.kernel_tcp', memory({ kernelTcp: { value: '-9' } })],
  ['adjust.linux.resources.cpu.quota', cpu({ quota: { value: '-2' } })],
  ['adjust.linux.resources.cpu.cpus', cpu({ cpus: '0;1' })],
  [
    'adjust.linux.resources.hugepage_limits[0].page_size',
    limits({ hugepageLimits: [{ pageSize: '../x', limit: '1' }] }),
  ],
  ['adjust.linux.resources.rdt_class', limits({ rdtClass: { value: '../gold' } })],
  ['adjust.linux.resources.blockio_class', limits({ blockioClass: { value: '..' } })],
  ['adjust.linux.resources.unified key', limits({ unified: { '../../cgroup.procs': '1' } })],
  ['adjust.linux.resources.pids.limit', limits({ pids: { limit: '-5' } })],
  [
    'adjust.linux.resources.devices[0].type',
    limits({ devices: [{ allow: true, type: 'x', major: undefined, minor: undefined, access: '' }] }),
  ],
  [
    'adjust.linux.resources.devices[0].access',
    limits({ devices: [{ allow: true, type: 'c', major: undefined, minor: undefined, access: 'rx' }] }),
  ],
  [
    'adjust.linux.resources.devices[0].major',
    limits({ devices: [{ allow: true, type: 'c', major: { value: '-2' }, minor: undefined, access: '' }] }),
  ],
  ['adjust.linux.oom_score_adj', linux({ oomScoreAdj: { value: '1001' } })],
  ['adjust.linux.io_priority.class', linux({ ioPriority: { class: 9 as wire.IOPrioClass, priority: 0 } })],
  ['adjust.linux.io_priority.priority', linux({ ioPriority: { class: 1, priority: 8 } })],
  [
    'adjust.linux.seccomp_policy.syscalls[0].args[0].value',
    linux({
      seccompPolicy: {
        ...(seccomp ?? assert.fail()),
        syscalls: [
          {
            names: ['a'],
            action: 'b',
            errnoRet: undefined,
            args: [{ index: 0, value: '18446744073709551615', valueTwo: '0', op: 'c' }],
          },
        ],
      },
    }),
  ],
  ['adjust.linux.namespaces[0].path', linux({ namespaces: [{ type: 'ipc', path: 'ns' }] })],
  ['adjust.linux.sysctl["a"]', linux({ sysctl: { a: '\0' } })],
  ['adjust.linux.scheduler.policy', linux({ scheduler: { ...scheduler, policy: 99 as wire.LinuxSchedulerPolicy } })],
  ['adjust.linux.scheduler.flags[0]', linux({ scheduler: { ...scheduler, flags: [-1] } })],
  [
    'adjust.linux.rdt.clos_id',
    linux({ rdt: { closId: { value: 'a/b' }, schemata: undefined, enableMonitoring: undefined, remove: false } }),
  ],
  ['adjust.linux.memory_policy.mode', linux({ memoryPolicy: { mode: 42 as wire.MpolMode, nodes: '', flags: [] } })],
];

describe('what a plugin may not answer', () => {
  for (const [field, adjust] of bad)
    it(`${field}: is refused, in words that name the plugin and the field`, () => {
      const message = messageOf(answered({ ...base(), ...adjust }));
      assert.ok(message.startsWith('NRI plugin "10-odd" sent an answer to CreateContainer with '), message);
      assert.ok(message.includes(` with ${field}, which `), message);
      assert.ok(message.length < 500, 'however long the value is');
    });
});
