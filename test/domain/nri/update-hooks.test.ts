/** Changes of limits, as NRI plugins are asked about them and want them themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { NriUpdate } from '../../../src/domain/model/nri-views.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  CONTAINER,
  createContainer,
  fails,
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
