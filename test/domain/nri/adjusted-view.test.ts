/** What the next plugin is told of a container: each field as the plugin before it changed it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { ContainerAdjustment, LinuxContainerAdjustment } from '../../../src/domain/model/nri.ts';
import type { NriContainer } from '../../../src/domain/model/nri-views.ts';
import { adjustedView } from '../../../src/domain/nri/adjusted-view.ts';
import { adjustment } from '../../adapters/nri/messages/arbitrary.ts';

const mount = (destination: string, source = '/srv') => ({ destination, source, options: ['bind'] });
const device = (path: string, minor = 3) => ({ path, type: 'c' as const, major: 1, minor });

const view: NriContainer = {
  id: 'c',
  podSandboxId: 'pod',
  name: 'app',
  state: 'CONTAINER_UNKNOWN',
  annotations: { a: '1', b: '2' },
  args: ['run'],
  env: ['A=1', { name: 'B', token: 't' }],
  mounts: [mount('/a'), mount('/b')],
  hooks: { prestart: [{ path: '/first' }] },
  rlimits: [{ type: 'RLIMIT_CORE', hard: '1', soft: '1' }],
  cdiDevices: ['x/y=z'],
  linux: {
    namespaces: [{ type: 'ipc', path: '/ipc' }, { type: 'pid' }],
    devices: [device('/dev/a'), device('/dev/b')],
    resources: { memory: { limit: '1' }, devices: [{ allow: true, access: 'r' }], unified: { x: '1' } },
    oomScoreAdj: 1,
    cgroupsPath: '/c',
    sysctl: { a: '1', b: '2' },
    netDevices: { eth0: { name: 'net0' } },
    rdt: { closId: 'gold', enableMonitoring: true },
  },
};

const linux = (more: LinuxContainerAdjustment): ContainerAdjustment => ({ linux: more });

/** An answer, and what it changes in the view. */
const rows: readonly (readonly [what: string, answer: ContainerAdjustment, of: Partial<NriContainer>])[] = [
  ['annotations', { annotations: { '-a': '', c: '3' } }, { annotations: { b: '2', c: '3' } }],
  ['mounts', { mounts: [mount('-/a'), mount('/b', '/other')] }, { mounts: [mount('/b', '/other')] }],
  ['env', { env: ['-B', 'A=2', 'C=3'] }, { env: ['A=2', 'C=3'] }],
  ['args', { args: ['', 'walk'] }, { args: ['walk'] }],
  ['hooks', { hooks: { prestart: [{ path: '/b' }] } }, { hooks: { prestart: [{ path: '/first' }, { path: '/b' }] } }],
  [
    'rlimits',
    {
      rlimits: [
        { type: 'RLIMIT_NOFILE', hard: '2', soft: '2' },
        { type: 'RLIMIT_CORE', hard: '3', soft: '3' },
      ],
    },
    {
      rlimits: [
        { type: 'RLIMIT_CORE', hard: '3', soft: '3' },
        { type: 'RLIMIT_NOFILE', hard: '2', soft: '2' },
      ],
    },
  ],
  ['cdiDevices', { cdiDevices: ['x/y=more'] }, { cdiDevices: ['x/y=z', 'x/y=more'] }],
];

const linuxRows: readonly (readonly [what: string, answer: LinuxContainerAdjustment, of: NriContainer['linux']])[] = [
  ['devices', { devices: [device('-/dev/a'), device('/dev/b', 9)] }, { devices: [device('/dev/b', 9)] }],
  [
    'resources',
    {
      resources: {
        memory: { swap: '2' },
        cpu: { shares: '3' },
        devices: [{ allow: false, access: 'w' }],
        unified: { y: '2' },
      },
    },
    {
      resources: {
        memory: { limit: '1', swap: '2' },
        cpu: { shares: '3' },
        devices: [
          { allow: true, access: 'r' },
          { allow: false, access: 'w' },
        ],
        unified: { x: '1', y: '2' },
      },
    },
  ],
  ['namespaces', { namespaces: [{ type: '-pid' }, { type: 'ipc' }] }, { namespaces: [{ type: 'ipc' }] }],
  ['sysctl', { sysctl: { '-a': '', b: '3' } }, { sysctl: { b: '3' } }],
  [
    'netDevices',
    { netDevices: { '-eth0': { name: '' }, eth1: { name: 'n' } } },
    { netDevices: { eth1: { name: 'n' } } },
  ],
  ['rdt', { rdt: { schemata: ['x'] } }, { rdt: { closId: 'gold', enableMonitoring: true, schemata: ['x'] } }],
  ['rdt, taken away', { rdt: { remove: true, closId: 'b' } }, { rdt: { closId: 'b' } }],
  ['cgroupsPath', { cgroupsPath: '/other' }, { cgroupsPath: '/other' }],
  ['oomScoreAdj', { oomScoreAdj: 0 }, { oomScoreAdj: 0 }],
  [
    'ioPriority',
    { ioPriority: { class: 'IOPRIO_CLASS_RT', priority: 1 } },
    { ioPriority: { class: 'IOPRIO_CLASS_RT', priority: 1 } },
  ],
  ['scheduler', { scheduler: { policy: 'SCHED_BATCH' } }, { scheduler: { policy: 'SCHED_BATCH' } }],
  ['seccompPolicy', { seccompPolicy: { defaultAction: 'x' } }, { seccompPolicy: { defaultAction: 'x' } }],
  ['memoryPolicy', { memoryPolicy: { mode: 'MPOL_BIND', nodes: '0' } }, {}],
];

describe('the next plugin is told of', () => {
  for (const [what, answer, of] of rows)
    it(what, () => {
      assert.deepEqual(adjustedView(view, answer), { ...view, ...of });
    });

  for (const [what, answer, of] of linuxRows)
    it(what, () => {
      assert.deepEqual(adjustedView(view, linux(answer)), { ...view, linux: { ...view.linux, ...of } });
    });

  it('nothing new where nothing was changed', () => {
    assert.equal(adjustedView(view, {}), view);
  });

  it('what it is told of, and the view before it stays what it was', () => {
    const before = JSON.stringify(view);
    fc.assert(
      fc.property(adjustment, (answer) => {
        const once = adjustedView(view, answer);
        assert.deepEqual(adjustedView(view, answer), once);
        assert.equal(JSON.stringify(view), before);
        const names = (once.env ?? []).map((variable) => (typeof variable === 'string' ? variable : variable.name));
        assert.ok(!names.some((name) => name.startsWith('-')), 'no mark is left');
      }),
    );
  });
});
