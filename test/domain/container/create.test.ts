/** CreateContainer: looks at the image, makes the files, and has the container CREATED; or leaves nothing. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  allSucceeds,
  callerGoes,
  containerConfig,
  createContainer,
  createdContainer,
  fails,
  isDue,
  pulledImage,
  readyPod,
  restart,
  runningContainer,
  runPod,
  stopPod,
  succeeds,
} from '../happenings.ts';

const again = createContainer(containerConfig(), 'another-id');

describe('CreateContainer', () => {
  it('has image, mounts and devices inspected', () => {
    given(pulledImage, readyPod)
      .when(createContainer())
      .follows({ records: ['container.requested'], asks: ['InspectContainer'] });
  });

  it("asks for the pod's shim where that failed before", () => {
    given(pulledImage, runPod(), succeeds('PreparePodSandbox'), fails('StartShim'), allSucceeds)
      .when(createContainer())
      .follows({ records: ['container.requested'], asks: ['StartShim', 'InspectContainer'] });
  });

  it('then makes its files, and answers when they are there', () => {
    given(pulledImage, readyPod, createContainer())
      .when(succeeds('InspectContainer'), succeeds('PrepareContainer'))
      .follows({
        records: ['container.created'],
        asks: ['PrepareContainer', 'CreateTask'],
        answers: ['CreateContainer OK'],
      });
  });

  it('refuses what is not well made, and asks for nothing', () => {
    given(pulledImage, readyPod)
      .when(createContainer(containerConfig({ mounts: [{ containerPath: 'relative', hostPath: '/data' }] })))
      .follows({ answers: ['CreateContainer InvalidField'] });
  });

  it('refuses an image that is not on the node', () => {
    given(readyPod)
      .when(createContainer())
      .follows({ answers: ['CreateContainer ImageNotFound'] });
  });

  it('refuses a pod that is not there, is not READY yet, or is no more', () => {
    given(pulledImage)
      .when(createContainer())
      .follows({ answers: ['CreateContainer PodSandboxNotFound'] });
    given(pulledImage, runPod())
      .when(createContainer())
      .follows({ answers: ['CreateContainer WrongState'] });
    given(pulledImage, readyPod, stopPod, allSucceeds)
      .when(createContainer())
      .follows({ answers: ['CreateContainer WrongState'] });
  });
});

describe('the same CreateContainer again (C5)', () => {
  it('joins the one that is under way, and both are answered', () => {
    given(pulledImage, readyPod, createContainer())
      .when(again, allSucceeds)
      .follows({
        records: ['call.joined', 'container.created'],
        asks: ['PrepareContainer', 'CreateTask'],
        answers: ['CreateContainer OK', 'CreateContainer OK'],
      });
  });

  it('gets the container that is there already, unless that was started', () => {
    given(createdContainer)
      .when(again)
      .follows({ answers: ['CreateContainer OK'] });
    given(runningContainer)
      .when(again)
      .follows({ answers: ['CreateContainer NameTaken'] });
  });

  it('is refused when it asks for something else by the same name', () => {
    given(createdContainer)
      .when(createContainer(containerConfig({ command: ['other'] }), 'another-id'))
      .follows({ answers: ['CreateContainer NameTaken'] });
  });
});

describe('a CreateContainer whose caller has gone (C5)', () => {
  it('runs on, and its container waits to be asked for', () => {
    given(pulledImage, readyPod, createContainer(), callerGoes)
      .when(allSucceeds)
      .follows({
        records: ['container.created'],
        asks: ['PrepareContainer', 'wait: claim'],
        answers: ['CreateContainer OK'],
      });
  });

  it('is undone when nobody asks, and the pod keeps its shim', () => {
    given(pulledImage, readyPod, createContainer(), callerGoes, allSucceeds)
      .when(isDue('claim'), allSucceeds)
      .follows({ records: ['container.failed', 'container.removed'], asks: ['CleanContainer'] });
  });
});

describe('a container that fails while it is made (C6)', () => {
  it('is gone at once when only the inspection failed', () => {
    given(pulledImage, readyPod, createContainer())
      .when(fails('InspectContainer', 'InvalidField'))
      .follows({ records: ['container.failed', 'container.removed'], answers: ['CreateContainer InvalidField'] });
  });

  it('has its files removed, though making them failed, before the caller is told', () => {
    given(pulledImage, readyPod, createContainer(), succeeds('InspectContainer'))
      .when(fails('PrepareContainer'), succeeds('CleanContainer'))
      .follows({
        records: ['container.failed', 'container.removed'],
        asks: ['CleanContainer'],
        answers: ['CreateContainer HostFailed'],
      });
  });

  it('owes what could not be removed, and tries again', () => {
    given(pulledImage, readyPod, createContainer(), succeeds('InspectContainer'), fails('PrepareContainer'))
      .when(fails('CleanContainer'))
      .follows({ asks: ['wait: retry'], answers: ['CreateContainer HostFailed'] });
  });

  it('is undone when the daemon ended meanwhile (C19)', () => {
    given(pulledImage, readyPod, createContainer(), succeeds('InspectContainer'))
      .when(restart(), allSucceeds)
      .follows({
        records: ['container.failed', 'container.removed'],
        asks: ['ReconnectShim', 'CleanContainer'],
        answers: ['CreateContainer Interrupted'],
      });
  });
});
