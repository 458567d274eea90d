/** UpdateContainerResources: limits are in force before they are written down. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { call, CONTAINER, exitedContainer, fails, runningContainer, succeeds } from '../happenings.ts';

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

  it('refuses limits that are not well made, and a container that is not there', () => {
    given(runningContainer)
      .when(updateOf('-3'))
      .follows({ answers: ['UpdateContainerResources InvalidField'] });
    given()
      .when(update)
      .follows({ answers: ['UpdateContainerResources ContainerNotFound'] });
  });
});
