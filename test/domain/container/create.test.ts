/** CreateContainer: looks at the image, makes the files, and has the container CREATED; or leaves nothing. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { effectRequest } from '../../../src/domain/turn/effect-requests.ts';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  callerGoes,
  containerConfig,
  createContainer,
  createdContainer,
  fails,
  isDue,
  nodeStarts,
  pulledImage,
  readyPod,
  removeContainer,
  restart,
  runningContainer,
  runPod,
  stopPod,
  succeeds,
} from '../happenings.ts';

const again = createContainer(containerConfig(), 'another-id');

describe('CreateContainer', () => {
  it('has image, mounts and devices inspected, and its files made of what is found', () => {
    given(pulledImage, readyPod)
      .when(createContainer())
      .follows({ records: ['container.requested'], asks: ['InspectContainer', 'PrepareContainer'] });
  });

  it('C13: by rules 7 asks for its files when it was inspected', () => {
    const older = given.bind(null, nodeStarts({ ...FACTS, rules: 7 }), pulledImage, readyPod);
    older()
      .when(createContainer())
      .follows({ records: ['container.requested'], asks: ['InspectContainer'] });
    older(createContainer())
      .when(succeeds('InspectContainer'))
      .follows({ asks: ['PrepareContainer'] });
    older(createContainer())
      .when(fails('InspectContainer', 'InvalidField'))
      .follows({ records: ['container.failed', 'container.removed'], answers: ['CreateContainer InvalidField'] });
  });

  it('refuses less memory and swap together than memory alone, which by rules 10 the OCI runtime did (C13)', () => {
    const resources = { memoryLimitInBytes: '2000000', memorySwapLimitInBytes: '1000000' };
    const little = createContainer({ ...containerConfig(), linux: { resources } });
    given(pulledImage, readyPod)
      .when(little)
      .follows({ answers: ['CreateContainer InvalidField'] });
    given(nodeStarts({ ...FACTS, rules: 10 }), pulledImage, readyPod)
      .when(little)
      .follows({ records: ['container.requested'], asks: ['InspectContainer', 'PrepareContainer'] });
  });

  it('makes no files of what is given up while it is inspected (C6)', () => {
    const story = given(pulledImage, readyPod, createContainer()).when(removeContainer, succeeds('InspectContainer'));
    const files = [...story.state.effects.values()].find(({ intent }) => intent.kind === 'PrepareContainer');
    assert.ok(files !== undefined);
    const request = effectRequest(story.state, files);
    assert.ok(!request.ok);
    assert.equal(request.failure.reason, 'Cancelled');
  });

  it("asks for the pod's shim where that failed before", () => {
    given(pulledImage, runPod(), succeeds('PreparePodSandbox'), fails('StartShim'), allSucceeds)
      .when(createContainer())
      .follows({ records: ['container.requested'], asks: ['StartShim', 'InspectContainer', 'PrepareContainer'] });
  });

  it('then answers when they are there', () => {
    given(pulledImage, readyPod, createContainer())
      .when(succeeds('InspectContainer'), succeeds('PrepareContainer'))
      .follows({
        records: ['container.created'],
        asks: ['CreateTask'],
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
        asks: ['CreateTask'],
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
        asks: ['wait: claim'],
        answers: ['CreateContainer OK'],
      });
  });

  it('is undone when nobody asks, and the pod keeps its shim', () => {
    given(pulledImage, readyPod, createContainer(), callerGoes, allSucceeds)
      .when(isDue('claim'), allSucceeds)
      .follows({ records: ['container.failed', 'container.removed'], asks: ['CleanContainer'] });
  });

  it('stays when somebody asks again for what nobody had claimed', () => {
    given(pulledImage, readyPod, createContainer(), callerGoes, allSucceeds)
      .when(again)
      .follows({ records: ['container.claimed'], answers: ['CreateContainer OK'] });
  });
});

describe('a container that fails while it is made (C6)', () => {
  it('is gone when nothing is left of it, also where only the inspection failed', () => {
    given(pulledImage, readyPod, createContainer())
      .when(fails('InspectContainer', 'InvalidField'))
      .follows({ records: ['container.failed'] });
    given(pulledImage, readyPod, createContainer(), fails('InspectContainer', 'InvalidField'))
      .when(fails('PrepareContainer', 'InvalidField'), succeeds('CleanContainer'))
      .follows({
        records: ['container.removed'],
        asks: ['CleanContainer'],
        answers: ['CreateContainer InvalidField'],
      });
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
