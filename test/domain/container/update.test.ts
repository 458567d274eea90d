/** UpdateContainerResources: limits are in force before they are written down. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LinuxContainerResources } from '../../../src/domain/model/cri.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  CONTAINER,
  exitedContainer,
  fails,
  nodeStarts,
  runningContainer,
  succeeds,
} from '../happenings.ts';

const updateOf = (cpuShares: string) =>
  call({ method: 'UpdateContainerResources', containerId: CONTAINER, resources: { cpuShares } });
const update = updateOf('512');

describe('UpdateContainerResources', () => {
  it('has the limits put in force, then writes them down and answers', () => {
    given(runningContainer)
      .when(update, succeeds('UpdateContainer'))
      .follows({
        records: ['container.updated'],
        asks: ['UpdateContainer'],
        answers: ['UpdateContainerResources OK'],
      });
  });

  it('writes nothing down when they could not be put in force', () => {
    given(runningContainer, update)
      .when(fails('UpdateContainer', 'RuntimeFailed'))
      .follows({ answers: ['UpdateContainerResources RuntimeFailed'] });
  });

  it('makes one change after the other', () => {
    given(runningContainer, update).when(updateOf('256')).follows({});
    given(runningContainer, update, updateOf('256'))
      .when(succeeds('UpdateContainer'))
      .follows({
        records: ['container.updated'],
        asks: ['UpdateContainer'],
        answers: ['UpdateContainerResources OK'],
      });
  });

  it('only writes them down for a container that has ended', () => {
    given(exitedContainer)
      .when(update)
      .follows({ records: ['container.updated'], answers: ['UpdateContainerResources OK'] });
  });

  it('takes swap along with memory, where nothing is said of swap', () => {
    const limit = (resources: LinuxContainerResources) =>
      call({ method: 'UpdateContainerResources', containerId: CONTAINER, resources });
    const both = limit({ memoryLimitInBytes: '7000000', memorySwapLimitInBytes: '7000000' });
    for (const memoryLimitInBytes of ['9000000', '5000000']) {
      const { state } = given(runningContainer, both, allSucceeds).when(limit({ memoryLimitInBytes }), allSucceeds);
      assert.deepEqual(state.containers.get(CONTAINER)?.resources, { memoryLimitInBytes });
    }
    given(nodeStarts({ ...FACTS, rules: 10 }), runningContainer, both, allSucceeds)
      .when(limit({ memoryLimitInBytes: '9000000' }))
      .follows({ answers: ['UpdateContainerResources InvalidField'] });
  });

  it('refuses limits that are not well made, and a container that is not there', () => {
    given(runningContainer)
      .when(updateOf('-3'))
      .follows({ answers: ['UpdateContainerResources InvalidField'] });
    given()
      .when(update)
      .follows({ answers: ['UpdateContainerResources ContainerNotFound'] });
  });
});
