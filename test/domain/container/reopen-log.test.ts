/** ReopenContainerLog: the log of what runs is opened anew, by its name. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { call, CONTAINER, exitedContainer, runningContainer, succeeds } from '../happenings.ts';

const reopen = call({ method: 'ReopenContainerLog', containerId: CONTAINER });

describe('ReopenContainerLog', () => {
  it('has the log opened anew, and answers', () => {
    given(runningContainer)
      .when(reopen, succeeds('ReopenLog'))
      .follows({ asks: ['ReopenLog'], answers: ['ReopenContainerLog OK'] });
  });

  it('is refused for a container that does not run', () => {
    given(exitedContainer)
      .when(reopen)
      .follows({ answers: ['ReopenContainerLog WrongState'] });
  });
});
