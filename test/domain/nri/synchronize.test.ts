/** What a plugin is told when it comes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { given, type Happening } from '../given.ts';
import {
  allSucceeds,
  callerGoes,
  CONTAINER,
  containerConfig,
  createContainer,
  createdContainer,
  exitedContainer,
  fails,
  isDue,
  POD,
  pulledImage,
  readyPod,
  removeContainer,
  removePod,
  runningContainer,
  runPod,
  stopPod,
  succeeds,
} from '../happenings.ts';
import { closes, plugin, registers, requested } from './plugin-happenings.ts';

const told = (...happenings: readonly Happening[]) => {
  const { state } = given(...happenings, registers(plugin('20', 'late', 'CreateContainer')));
  const { pods, containers } = requested(state, 'SynchronizePlugin');
  return [[...pods].map(({ id }) => id), [...containers].map(({ id, state: word }) => [id, word])];
};

test('every pod that clients may know of, and every container that is created or runs', () => {
  assert.deepEqual(told(), [[], []]);
  assert.deepEqual(told(runPod()), [[], []], 'it is being made');
  assert.deepEqual(told(readyPod), [[POD], []]);
  assert.deepEqual(told(createdContainer), [[POD], [[CONTAINER, 'CONTAINER_CREATED']]]);
  assert.deepEqual(told(runningContainer), [[POD], [[CONTAINER, 'CONTAINER_RUNNING']]]);
  assert.deepEqual(told(exitedContainer), [[POD], []]);
  assert.deepEqual(told(readyPod, stopPod, allSucceeds), [[POD], []], 'also where it is NOTREADY');
});

test('in the order in which it was made', () => {
  const more = createContainer(containerConfig({ metadata: { name: 'second' } }), 'another');
  assert.deepEqual(told(createdContainer, more, allSucceeds)[1], [
    [CONTAINER, 'CONTAINER_CREATED'],
    ['another', 'CONTAINER_CREATED'],
  ]);
});

test('what others were asked about before, and is not made yet; nothing that others hear the end of', () => {
  const early = plugin('10', 'early', 'CreateContainer', 'StopContainer', 'RemoveContainer');
  const creating = [pulledImage, readyPod, createContainer()];
  const other = [registers(plugin('10', 'other', 'RunPodSandbox')), succeeds('SynchronizePlugin')];
  assert.deepEqual(told(...other, ...creating)[1], [], 'it will be asked about it');
  assert.deepEqual(told(...creating)[1], [[CONTAINER, 'CONTAINER_CREATED']], 'its files are asked for');
  const asked = [registers(early), succeeds('SynchronizePlugin'), ...creating, succeeds('InspectContainer')];
  assert.deepEqual(told(...asked)[1], [[CONTAINER, 'CONTAINER_CREATED']]);
  assert.deepEqual(told(...creating, succeeds('InspectContainer'))[1], [[CONTAINER, 'CONTAINER_CREATED']]);
  const ending = [registers(early), succeeds('SynchronizePlugin'), createdContainer, removeContainer];
  assert.deepEqual(told(...ending)[1], []);
  assert.deepEqual(told(...ending, closes(early.id))[1], []);
});

test('no pod that is undone before anybody was asked about it; one that was READY, with its end', () => {
  assert.deepEqual(told(runPod(), succeeds('PreparePodSandbox'), fails('PinNamespaces')), [[], []]);
  const pods = plugin('10', 'pods', 'StopPodSandbox', 'RemovePodSandbox');
  const unclaimed = [runPod(), callerGoes, allSucceeds, registers(pods), succeeds('SynchronizePlugin')];
  const { state } = given(...unclaimed).when(isDue('claim'));
  assert.equal(requested(state, 'CallPlugins').hook, 'StopPodSandbox');
});

test('C17: views are made when they are sent, of what there was in the turn of the registration', () => {
  const story = given(createdContainer, registers(plugin('20', 'late', 'CreateContainer')));
  const { pods, containers } = requested(story.state, 'SynchronizePlugin');
  const view = [...containers];
  const { state } = story.when(removeContainer, allSucceeds, stopPod, allSucceeds, removePod, allSucceeds);
  assert.deepEqual([state.containers.size, state.sandboxes.size], [0, 0]);
  assert.equal([...pods].length, 1);
  assert.deepEqual([...containers], view);
});
