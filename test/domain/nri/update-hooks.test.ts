/** Changes of limits, as NRI plugins are asked about them and want them themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LinuxContainerResources } from '../../../src/domain/model/cri.ts';
import type { NriResources } from '../../../src/domain/model/nri.ts';
import type { NriUpdate } from '../../../src/domain/model/nri-views.ts';
import type { Event } from '../../../src/domain/model/records.ts';
import { containerNow } from '../../../src/domain/nri/of-state.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  CONTAINER,
  createContainer,
  exits,
  fails,
  nodeStarts,
  POD,
  pulledImage,
  readyPod,
  removeContainer,
  runningContainer,
  succeeds,
} from '../happenings.ts';
import { answered, answers, plugin, registers, requested, says } from './plugin-happenings.ts';

const limits = plugin('10', 'limits', 'UpdateContainer', 'PostUpdateContainer');
const running = given.bind(null, registers(limits), runningContainer);
const update = call({ method: 'UpdateContainerResources', containerId: CONTAINER, resources: { cpuShares: '100' } });

const shares = (value: string, more: Partial<NriUpdate> = {}): NriUpdate => ({
  containerId: CONTAINER,
  resources: { cpu: { shares: value } },
  ...more,
});
const wants = (name: string, ...updates: readonly NriUpdate[]) => answers(name, { hook: 'UpdateContainer', updates });

test('plugins are asked about a change before it is put in force, and their answer takes its place', () => {
  const asked = running().when(update);
  asked.follows({ asks: ['CallPlugins'] });
  assert.deepEqual(requested(asked.state, 'CallPlugins').change?.resources?.cpu?.shares, '100');
  const story = running(update).when(answered('UpdateContainer', wants('10-limits', shares('300'))));
  story.follows({ asks: ['UpdateContainer'] });
  assert.equal(requested(story.state, 'UpdateContainer').resources.cpu?.shares, 300);
  running(update, answered('UpdateContainer'))
    .when(succeeds('UpdateContainer'))
    .follows({ records: ['container.updated'], asks: ['CallPlugins'], answers: ['UpdateContainerResources OK'] });
});

test('a veto, or two that want the same otherwise, fail the change', () => {
  running(update)
    .when(answered('UpdateContainer', says('10-limits', 'refused')))
    .follows({ answers: ['UpdateContainerResources PluginRefused'] });
  running(update)
    .when(answered('UpdateContainer', wants('10-limits', shares('1')), wants('20-b', shares('2'))))
    .follows({ answers: ['UpdateContainerResources PluginConflict'] });
  running(update, removeContainer)
    .when(answered('UpdateContainer'))
    .follows({ answers: ['UpdateContainerResources WrongState'] });
});

test('one change after the other, each asked about; a refused one is not told to have happened', () => {
  running(update).when(update).follows({});
  running(update, update)
    .when(answered('UpdateContainer', says('10-limits', 'refused')))
    .follows({ asks: ['CallPlugins'], answers: ['UpdateContainerResources PluginRefused'] });
  running(update, answered('UpdateContainer'))
    .when(fails('UpdateContainer', 'RuntimeFailed'))
    .follows({ answers: ['UpdateContainerResources RuntimeFailed'] });
});

test('plugins are not asked about what one of them wants', () => {
  const own = { method: 'UpdateContainerResources', containerId: CONTAINER, resources: { cpuShares: '7' } } as const;
  running()
    .when(call({ ...own, plugin: '10-limits' }), succeeds('UpdateContainer'))
    .follows({ records: ['container.updated'], asks: ['UpdateContainer'], answers: ['UpdateContainerResources OK'] });
});

test('a limit of memory that a plugin wants takes swap along', () => {
  const own = { method: 'UpdateContainerResources', containerId: CONTAINER } as const;
  const both = { memoryLimitInBytes: '7000000', memorySwapLimitInBytes: '7000000' };
  const { state } = running(call({ ...own, resources: both, plugin: '10-limits' }), allSucceeds).when(
    call({ ...own, resources: { memoryLimitInBytes: '9000000' }, plugin: '10-limits' }),
    allSucceeds,
  );
  assert.deepEqual(state.containers.get(CONTAINER)?.resources, { memoryLimitInBytes: '9000000' });
});

const own = { method: 'UpdateContainerResources', containerId: CONTAINER } as const;
const byPlugin = (beyond: NriResources, resources: LinuxContainerResources = {}) =>
  call({ ...own, resources, plugin: '10-limits', beyond });
const beyond: NriResources = {
  memory: { reservation: '5', swappiness: '10', kernel: '6', kernelTcp: '7', disableOomKiller: true },
  cpu: { realtimeRuntime: '8', realtimePeriod: '9' },
  pids: { limit: '11' },
};
const inOci = {
  memory: { reservation: 5, swappiness: 10, kernel: 6, kernelTCP: 7, disableOOMKiller: true },
  cpu: { realtimeRuntime: 8, realtimePeriod: 9 },
  pids: { limit: 11 },
};

test('what plugins want that CRI has no words for is put in force, and a refused change has it undone', () => {
  const asked = requested(running().when(byPlugin(beyond, { cpuShares: '100' })).state, 'UpdateContainer');
  assert.deepEqual(asked.resources, { ...inOci, cpu: { ...inOci.cpu, shares: 100 } });
  assert.deepEqual(asked.previous.pids, { limit: -1 });
  const again = running(byPlugin(beyond), allSucceeds).when(byPlugin({ pids: { limit: '12' } }));
  const { resources, previous } = requested(again.state, 'UpdateContainer');
  assert.deepEqual([resources.pids, previous.pids], [{ limit: 12 }, { limit: 11 }]);
  assert.deepEqual(resources.memory, inOci.memory, 'what the change does not name holds on');
});

test('what plugins want that CRI has no words for is in their answers to a change too', () => {
  const story = running(update).when(
    answered('UpdateContainer', wants('10-limits', { containerId: CONTAINER, resources: beyond })),
  );
  assert.deepEqual(requested(story.state, 'UpdateContainer').resources, {
    ...inOci,
    cpu: { ...inOci.cpu, shares: 100 },
  });
});

test('what plugins want that CRI has no words for survives changes of a client, and a restart', () => {
  const { state } = running(byPlugin(beyond), allSucceeds, nodeStarts(), allSucceeds).when(update);
  assert.deepEqual(requested(state, 'UpdateContainer').resources.pids, inOci.pids);
  const container = state.containers.get(CONTAINER) ?? assert.fail();
  assert.deepEqual(containerNow(state, FACTS, container).linux?.resources?.pids, beyond.pids, 'plugins are told');
  const cut = running(byPlugin(beyond), nodeStarts()).when(allSucceeds);
  assert.deepEqual(cut.state.containers.get(CONTAINER)?.nri?.adjusted?.adjust.linux?.resources, beyond);
});

test('what plugins want of a container that has ended is written down', () => {
  const story = running(exits(), allSucceeds).when(byPlugin(beyond));
  story.follows({ records: ['container.updated'], answers: ['UpdateContainerResources OK'] });
  assert.deepEqual(story.state.containers.get(CONTAINER)?.nri?.adjusted?.adjust, { linux: { resources: beyond } });
});

const failureOf = (events: readonly Event[]): string =>
  events.flatMap(({ type, body }) => (type === 'call.completed' ? [body.failure?.message ?? ''] : [])).join();

test('classes and device rules that a container does not have are refused by name; its own say nothing', () => {
  const rows: readonly (readonly [wanted: NriResources, named: string])[] = [
    [{ blockioClass: 'slow' }, 'the class of block I/O (blockio_class) "slow"'],
    [{ rdtClass: 'gold', pids: { limit: '3' } }, 'the class of RDT (rdt_class) "gold"'],
    [{ devices: [{ allow: true, type: 'b', major: 9, minor: 9, access: 'rwm' }] }, 'other device rules (devices)'],
  ];
  for (const [wanted, named] of rows) {
    const alone = running().when(byPlugin(wanted));
    alone.follows({ answers: ['UpdateContainerResources PluginInvalid'] });
    const wish = { containerId: CONTAINER, resources: wanted };
    const asked = running(update).when(answered('UpdateContainer', wants('10-limits', wish)));
    asked.follows({ answers: ['UpdateContainerResources PluginInvalid'] });
    for (const { events } of [alone, asked]) assert.ok(failureOf(events).includes(named), failureOf(events));
    running(update)
      .when(answered('UpdateContainer', wants('10-limits', { ...wish, ignoreFailure: true })))
      .follows({ asks: ['UpdateContainer'] });
  }
  const { state } = running();
  const { devices = [] } =
    containerNow(state, FACTS, state.containers.get(CONTAINER) ?? assert.fail()).linux?.resources ?? {};
  assert.ok(devices.length > 0);
  running()
    .when(byPlugin({ devices, rdtClass: '', blockioClass: '' }))
    .follows({ asks: ['UpdateContainer'] });
});

test('by older rules, what plugins want that CRI has no words for is left out of the answers to a change', () => {
  const wish = wants('10-limits', { containerId: CONTAINER, resources: beyond });
  const old = nodeStarts({ ...FACTS, rules: 3 });
  const { state } = given(old, registers(limits), runningContainer, update).when(answered('UpdateContainer', wish));
  assert.deepEqual(requested(state, 'UpdateContainer').resources, { cpu: { shares: 100 } });
});

test('a plugin adjusts the container that is made, and does not update it', () => {
  const creating = plugin('10', 'creating', 'CreateContainer');
  given(registers(creating), pulledImage, readyPod, createContainer(), succeeds('InspectContainer'))
    .when(answered('CreateContainer', answers('10-creating', { hook: 'CreateContainer', updates: [shares('5')] })))
    .follows({
      records: ['container.failed', 'container.removed'],
      answers: ['CreateContainer PluginInvalid'],
    });
});

test('plugins are asked about limits of a pod, and told when they hold', () => {
  const pods = plugin('10', 'pods', 'UpdatePodSandbox', 'PostUpdatePodSandbox');
  const limit = call({ method: 'UpdatePodSandboxResources', podSandboxId: POD, overhead: { cpuShares: '4' } });
  const story = given(registers(pods), readyPod, allSucceeds).when(limit);
  story.follows({ asks: ['CallPlugins'] });
  assert.equal(requested(story.state, 'CallPlugins').change?.overhead?.cpu?.shares, '4');
  given(registers(pods), readyPod, limit)
    .when(answered('UpdatePodSandbox'))
    .follows({ records: ['sandbox.updated'], asks: ['CallPlugins'], answers: ['UpdatePodSandboxResources OK'] });
  given(registers(pods), readyPod, limit)
    .when(answered('UpdatePodSandbox', says('10-pods', 'refused')))
    .follows({ answers: ['UpdatePodSandboxResources PluginRefused'] });
});
