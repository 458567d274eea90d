/** Limits that NRI plugins want changed: one row per rule of ownership, what takes the place of CRI's, and what stays. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { LinuxContainerResources } from '../../../src/domain/model/cri.ts';
import type { ContainerAdjustment, NriResources } from '../../../src/domain/model/nri.ts';
import type { NriUpdate } from '../../../src/domain/model/nri-views.ts';
import type { Result } from '../../../src/domain/model/result.ts';
import {
  adjustmentAfterUpdate,
  limitsUnder,
  mergedUpdates,
  type PluginUpdates,
  type RequestedUpdate,
  updatedResources,
  updateInCri,
} from '../../../src/domain/nri/updates.ts';
import { present } from '../../../src/domain/nri/claims.ts';
import { resources as arbitraryResources } from '../../adapters/nri/messages/arbitrary.ts';

const [FIRST, SECOND] = ['10-first', '20-second'] as const;

const answer = (plugin: string, ...updates: readonly NriUpdate[]): PluginUpdates => ({ plugin, updates });
const of = (containerId: string, resources: NriResources, mayFail = false): NriUpdate => ({
  containerId,
  resources,
  ...(mayFail ? { ignoreFailure: true } : {}),
});

function value<T>(result: Result<T>): T {
  if (!result.ok) assert.fail(result.failure.message);
  return result.value;
}

function refusal(result: Result<unknown>): string {
  if (result.ok) assert.fail('it was not refused');
  return `${result.failure.reason}: ${result.failure.message}`;
}

/** Every limit that has one owner. */
const owned: readonly (readonly [what: string, resources: NriResources])[] = [
  ['MemLimit', { memory: { limit: '1' } }],
  ['MemReservation', { memory: { reservation: '1' } }],
  ['MemSwapLimit', { memory: { swap: '1' } }],
  ['MemKernelLimit', { memory: { kernel: '1' } }],
  ['MemTCPLimit', { memory: { kernelTcp: '1' } }],
  ['MemSwappiness', { memory: { swappiness: '0' } }],
  ['MemDisableOomKiller', { memory: { disableOomKiller: false } }],
  ['MemUseHierarchy', { memory: { useHierarchy: false } }],
  ['CPUShares', { cpu: { shares: '2' } }],
  ['CPUQuota', { cpu: { quota: '2' } }],
  ['CPUPeriod', { cpu: { period: '2' } }],
  ['CPURealtimeRuntime', { cpu: { realtimeRuntime: '2' } }],
  ['CPURealtimePeriod', { cpu: { realtimePeriod: '2' } }],
  ['CPUSetCPUs', { cpu: { cpus: '0' } }],
  ['CPUSetMems', { cpu: { mems: '0' } }],
  ['PidsLimit', { pids: { limit: '5' } }],
  ['HugepageLimits 2MB', { hugepageLimits: [{ pageSize: '2MB', limit: '1' }] }],
  ['BlockioClass', { blockioClass: 'slow' }],
  ['RdtClass', { rdtClass: 'gold' }],
  ['CgroupsUnified memory.high', { unified: { 'memory.high': '1' } }],
];

describe('updates of several plugins', () => {
  for (const [what, resources] of owned)
    it(`${what} of a container has one owner: two that set it are a conflict, which names both and it`, () => {
      const message = refusal(mergedUpdates([answer(FIRST, of('c', resources)), answer(SECOND, of('c', resources))]));
      assert.ok(message.startsWith('PluginConflict: '), message);
      assert.ok(message.includes(`plugins "${FIRST}" and "${SECOND}" both tried to set ${what}:`), message);
      const { updates, owners } = value(
        mergedUpdates([answer(FIRST, of('c', resources)), answer(SECOND, of('d', resources))]),
      );
      assert.deepEqual(updates, [of('c', resources), of('d', resources)], 'containers do not conflict');
      assert.deepEqual(Object.keys(owners), ['c', 'd']);
    });

  it('that set different limits of a container are one update, in the order in which containers were named', () => {
    const { updates, owners } = value(
      mergedUpdates([
        answer(FIRST, of('c', { memory: { limit: '1' } }), of('d', {})),
        { plugin: '15-silent' },
        answer(SECOND, of('c', { memory: { swap: '2' }, cpu: { shares: '3' } })),
      ]),
    );
    assert.deepEqual(updates, [
      of('c', { memory: { limit: '1', swap: '2' }, cpu: { shares: '3' } }),
      { containerId: 'd' },
    ]);
    assert.deepEqual(owners['c']?.simple, { MemLimit: FIRST, MemSwapLimit: SECOND, CPUShares: SECOND });
  });

  it('may fail only where all of them may', () => {
    const [one, two] = [{ memory: { limit: '1' } }, { cpu: { shares: '2' } }];
    for (const [first, second] of [
      [true, true],
      [true, false],
      [false, true],
    ] as const) {
      const answers = [answer(FIRST, of('c', one, first)), answer(SECOND, of('c', two, second))];
      assert.equal(value(mergedUpdates(answers)).updates[0]?.ignoreFailure, first && second ? true : undefined);
    }
  });

  it('in conflict are left out whole where they may fail', () => {
    const late = of('c', { cpu: { cpus: '0' }, memory: { limit: '9' } }, true);
    const { updates, owners } = value(
      mergedUpdates([answer(FIRST, of('c', { memory: { limit: '1' } })), answer(SECOND, late)]),
    );
    assert.deepEqual(updates, [of('c', { memory: { limit: '1' } })]);
    assert.deepEqual(owners['c']?.simple, { MemLimit: FIRST }, 'and own nothing');
  });

  it('of the container that is being created are refused, also where they may fail', () => {
    const message = refusal(mergedUpdates([answer(FIRST, of('new', { cpu: { shares: '2' } }, true))], 'new'));
    assert.match(
      message,
      /^PluginInvalid: NRI plugin "10-first" wants an update of container new, which is being created/,
    );
  });

  it('of containers with odd names are like those of others', () => {
    const { updates } = value(mergedUpdates([answer(FIRST, of('__proto__', { cpu: { shares: '2' } }))]));
    assert.equal(updates[0]?.containerId, '__proto__');
  });
});

const requested: RequestedUpdate = {
  containerId: 'c',
  resources: { cpuShares: '512', memoryLimitInBytes: '1000', oomScoreAdj: '100', unified: { 'memory.high': '7' } },
};

describe('limits that CRI changes', () => {
  it('are those that were asked for where no plugin says anything of them', () => {
    const others = [of('d', { cpu: { shares: '2' } })];
    for (const answers of [[], [answer(FIRST)], [answer(FIRST, { containerId: 'c' })], [answer(FIRST, ...others)]]) {
      const updated = value(updatedResources(requested, answers));
      assert.equal(updated.resources, requested.resources);
      assert.deepEqual(updated.told.cpu, { shares: '512', quota: '0', period: '0' });
    }
    assert.deepEqual(value(updatedResources(requested, [answer(FIRST, ...others)])).others, others);
  });

  it('are those of plugins where they say any, over those that were asked for', () => {
    const { told, resources, beyond, others } = value(
      updatedResources(requested, [
        answer(FIRST, of('c', { memory: { limit: '2000', reservation: '5' }, pids: { limit: '9' } })),
        answer(
          SECOND,
          of('d', {}),
          of('c', { cpu: { cpus: '0-1', realtimePeriod: '3' }, unified: { 'io.weight': '1' } }),
        ),
      ]),
    );
    assert.deepEqual(resources, {
      cpuShares: '512',
      cpusetCpus: '0-1',
      memoryLimitInBytes: '2000',
      oomScoreAdj: '100',
      unified: { 'memory.high': '7', 'io.weight': '1' },
    });
    assert.deepEqual(beyond, { memory: { reservation: '5' }, cpu: { realtimePeriod: '3' }, pids: { limit: '9' } });
    assert.deepEqual(told.memory, { limit: '2000', reservation: '5' }, 'the next plugin is told so');
    assert.deepEqual(others, [{ containerId: 'd' }]);
  });

  it('that are 0 in an answer say nothing', () => {
    const zeros = answer(FIRST, of('c', { memory: { limit: '0' }, cpu: { shares: '0', quota: '9' } }));
    assert.deepEqual(value(updatedResources(requested, [zeros])).resources, { ...requested.resources, cpuQuota: '9' });
  });

  it('are refused where plugins are in conflict', () => {
    const both = [FIRST, SECOND].map((plugin) => answer(plugin, of('c', { cpu: { cpus: '0' } })));
    assert.match(refusal(updatedResources(requested, both)), /"10-first" and "20-second" both tried to set CPUSetCPUs/);
  });

  it('of memory take swap along, unless the plugin has a word on it', () => {
    const asked = { containerId: 'c', resources: { memoryLimitInBytes: '10', memorySwapLimitInBytes: '10' } };
    const more = (memory: NriResources['memory'] = {}) =>
      value(updatedResources(asked, [answer(FIRST, of('c', { memory }))])).resources;
    assert.deepEqual(more({ limit: '20' }), { memoryLimitInBytes: '20' });
    assert.deepEqual(more({ limit: '20', swap: '30' }), { memoryLimitInBytes: '20', memorySwapLimitInBytes: '30' });
    assert.deepEqual(more({ limit: '0', reservation: '5' }), asked.resources);
    assert.deepEqual(limitsUnder(asked.resources, { memory: { limit: '20' }, cpu: { shares: '0' } }), {
      memoryLimitInBytes: '20',
    });
    assert.deepEqual(limitsUnder(asked.resources, { cpu: { cpus: '0' } }), { ...asked.resources, cpusetCpus: '0' });
  });

  it('of other containers are requests that CRI could make, and what is beyond its words', () => {
    assert.deepEqual(updateInCri({ memory: { limit: '5', swap: '0' }, blockioClass: 'slow' }), {
      resources: { memoryLimitInBytes: '5' },
      beyond: { blockioClass: 'slow' },
    });
    assert.deepEqual(updateInCri({ cpu: { cpus: '0', mems: '0' } }), {
      resources: { cpusetCpus: '0', cpusetMems: '0' },
    });
  });

  it('lose nothing: each limit of a plugin is among those of CRI, or beyond them', () => {
    fc.assert(
      fc.property(arbitraryResources, (resources) => {
        const { resources: inCri, beyond } = updateInCri(resources);
        const { memory, cpu } = beyond ?? {};
        const isSaid = ([name, limit]: [string, unknown]): boolean =>
          limit !== '0' || name === 'cpus' || name === 'mems';
        assert.deepEqual(
          {
            ...present({ limit: inCri.memoryLimitInBytes, swap: inCri.memorySwapLimitInBytes }),
            ...memory,
          },
          Object.fromEntries(
            Object.entries(resources.memory ?? {}).filter((entry) => isSaid(entry) || entry[0] in (memory ?? {})),
          ),
        );
        assert.deepEqual(
          {
            ...present({
              shares: inCri.cpuShares,
              quota: inCri.cpuQuota,
              period: inCri.cpuPeriod,
              cpus: inCri.cpusetCpus,
              mems: inCri.cpusetMems,
            }),
            ...cpu,
          },
          Object.fromEntries(
            Object.entries(resources.cpu ?? {}).filter((entry) => isSaid(entry) || entry[0] in (cpu ?? {})),
          ),
        );
        for (const name of ['blockioClass', 'rdtClass', 'devices', 'pids'] as const)
          assert.deepEqual(beyond?.[name], resources[name]);
        for (const name of ['hugepageLimits', 'unified'] as const) assert.deepEqual(inCri[name], resources[name]);
      }),
    );
  });
});

describe('what plugins set in a container', () => {
  const adjust: ContainerAdjustment = {
    annotations: { a: 'b' },
    linux: {
      cgroupsPath: '/x',
      oomScoreAdj: 5,
      resources: {
        memory: { limit: '1', swap: '2', reservation: '3' },
        cpu: { shares: '4', quota: '5', period: '6', cpus: '0', mems: '0', realtimePeriod: '7' },
        hugepageLimits: [
          { pageSize: '2MB', limit: '8' },
          { pageSize: '1GB', limit: '9' },
        ],
        unified: { 'memory.high': '1', 'io.weight': '2' },
        blockioClass: 'slow',
        pids: { limit: '10' },
      },
    },
  };
  const after = (changes: LinuxContainerResources, beyond?: NriResources) =>
    adjustmentAfterUpdate(adjust, changes, beyond).linux;

  it('stays when limits are changed that are others', () => {
    assert.deepEqual(adjustmentAfterUpdate(adjust, {}), adjust);
    assert.deepEqual(adjustmentAfterUpdate(adjust, { cpuShares: '0', oomScoreAdj: '0', cpusetCpus: '' }), adjust);
    assert.deepEqual(adjustmentAfterUpdate({}, { cpuShares: '9' }), {});
  });

  it('goes where the change names it', () => {
    const rows: readonly (readonly [
      changes: LinuxContainerResources,
      left: object | undefined,
      of: 'memory' | 'cpu',
    ])[] = [
      [{ memoryLimitInBytes: '9' }, { reservation: '3' }, 'memory'],
      [{ memorySwapLimitInBytes: '9' }, { limit: '1', reservation: '3' }, 'memory'],
      [{ cpuShares: '9' }, { quota: '5', period: '6', cpus: '0', mems: '0', realtimePeriod: '7' }, 'cpu'],
      [{ cpuQuota: '-1' }, { shares: '4', period: '6', cpus: '0', mems: '0', realtimePeriod: '7' }, 'cpu'],
      [{ cpuPeriod: '9' }, { shares: '4', quota: '5', cpus: '0', mems: '0', realtimePeriod: '7' }, 'cpu'],
      [{ cpusetCpus: '0' }, { shares: '4', quota: '5', period: '6', mems: '0', realtimePeriod: '7' }, 'cpu'],
      [{ cpusetMems: '0' }, { shares: '4', quota: '5', period: '6', cpus: '0', realtimePeriod: '7' }, 'cpu'],
    ];
    for (const [changes, left, group] of rows) assert.deepEqual(after(changes)?.resources?.[group], left);
    assert.equal(after({ oomScoreAdj: '7' })?.oomScoreAdj, undefined);
    assert.deepEqual(after({ hugepageLimits: [{ pageSize: '2MB', limit: '0' }] })?.resources?.hugepageLimits, [
      { pageSize: '1GB', limit: '9' },
    ]);
    assert.deepEqual(after({ unified: { 'memory.high': '3' } })?.resources?.unified, { 'io.weight': '2' });
    assert.equal(after({ cpuShares: '9' })?.cgroupsPath, '/x');
  });

  it('is followed by what plugins said to the change', () => {
    const { resources } = after({}, { memory: { reservation: '33' }, pids: { limit: '11' } }) ?? {};
    assert.deepEqual(resources?.memory, { limit: '1', swap: '2', reservation: '33' });
    assert.deepEqual([resources.pids, resources.blockioClass], [{ limit: '11' }, 'slow']);
    assert.deepEqual(adjustmentAfterUpdate({}, {}, { rdtClass: 'gold' }), {
      linux: { resources: { rdtClass: 'gold' } },
    });
  });

  it('is nothing where every limit was named and there was nothing else', () => {
    const few: ContainerAdjustment = { linux: { resources: { cpu: { shares: '4' } } } };
    assert.deepEqual(adjustmentAfterUpdate(few, { cpuShares: '9' }), {});
  });
});
