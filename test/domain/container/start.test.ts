/** StartContainer: makes and starts the task, and settles with the shim whether it runs when nobody can tell. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  allSucceeds,
  createContainer,
  createdContainer,
  exitedContainer,
  fails,
  pulledImage,
  runPod,
  restart,
  runningContainer,
  shimSays,
  startContainer,
  stopPod,
  succeeds,
} from '../happenings.ts';

describe('StartContainer', () => {
  it('makes the task and starts it, by one record', () => {
    given(createdContainer)
      .when(startContainer)
      .follows({ records: ['container.starting'], asks: ['CreateTask', 'StartTask'] });
  });

  it('has the container RUNNING when it is started, and answers', () => {
    given(createdContainer, startContainer)
      .when(allSucceeds)
      .follows({ records: ['container.started'], answers: ['StartContainer OK'] });
  });

  it("waits for the pod's shim where that is not there yet", () => {
    const waiting = [
      pulledImage,
      runPod(),
      succeeds('PreparePodSandbox'),
      succeeds('PinNamespaces'),
      succeeds('AttachNetwork'),
      createContainer(),
      succeeds('InspectContainer'),
      succeeds('PrepareContainer'),
    ];
    given(...waiting)
      .when(startContainer)
      .follows({ records: ['container.starting'] });
    given(...waiting, startContainer)
      .when(succeeds('StartShim'))
      .follows({ asks: ['CreateTask', 'StartTask'] });
  });

  it('is answered once for all who ask while it is under way', () => {
    given(createdContainer, startContainer)
      .when(startContainer, allSucceeds)
      .follows({ records: ['container.started'], answers: ['StartContainer OK', 'StartContainer OK'] });
  });

  it('is refused for a container that runs, has ended, or is not there', () => {
    given(runningContainer)
      .when(startContainer)
      .follows({ answers: ['StartContainer WrongState'] });
    given(exitedContainer)
      .when(startContainer)
      .follows({ answers: ['StartContainer WrongState'] });
    given()
      .when(startContainer)
      .follows({ answers: ['StartContainer ContainerNotFound'] });
  });

  it('is refused in a pod that was stopped', () => {
    given(createdContainer, stopPod, allSucceeds)
      .when(startContainer)
      .follows({ answers: ['StartContainer WrongState'] });
  });

  it('has a container EXITED that could not be started, and its task deleted', () => {
    given(createdContainer, startContainer, succeeds('CreateTask'))
      .when(fails('StartTask', 'RuntimeFailed'))
      .follows({
        records: ['container.exited'],
        asks: ['DeleteTask'],
        answers: ['StartContainer RuntimeFailed'],
      });
  });
});

describe('a start that was under way when the daemon ended (C19)', () => {
  it('is told as interrupted, and the shim is asked what became of it', () => {
    given(createdContainer, startContainer)
      .when(restart())
      .follows({ asks: ['ReconnectShim'], answers: ['StartContainer Interrupted'] });
  });

  it('has succeeded when the task runs', () => {
    given(createdContainer, startContainer, restart())
      .when(shimSays({ status: 'running' }))
      .follows({ records: ['container.started'] });
  });

  it('has failed when there is no task; what may be left of one is deleted', () => {
    given(createdContainer, startContainer, restart())
      .when(shimSays({ status: 'absent' }))
      .follows({ records: ['container.exited'], asks: ['DeleteTask'] });
  });
});
