/** StartContainer: makes and starts the task, and settles with the shim whether it runs when nobody can tell. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { containerExitOf } from '../../../src/domain/model/container-state.ts';
import { newsIn } from '../../../src/domain/turn/observations.ts';
import { given, type Happening } from '../given.ts';
import {
  allSucceeds,
  call,
  callerGoes,
  CONTAINER,
  createContainer,
  createdContainer,
  exitedContainer,
  fails,
  inTurn,
  POD,
  pulledImage,
  readyPod,
  runPod,
  restart,
  runningContainer,
  shimIsLost,
  shimSays,
  startContainer,
  stopPod,
  succeeds,
} from '../happenings.ts';

/** Its task is being made. */
const justCreated = [
  pulledImage,
  readyPod,
  createContainer(),
  succeeds('InspectContainer'),
  succeeds('PrepareContainer'),
] as const;

describe('StartContainer', () => {
  it('starts the task that was made ahead, or has its start follow that', () => {
    given(createdContainer)
      .when(startContainer)
      .follows({ records: ['container.starting'], asks: ['StartTask'] });
    given(...justCreated)
      .when(startContainer)
      .follows({ records: ['container.starting'], asks: ['StartTask'] });
    given(...justCreated, startContainer)
      .when(allSucceeds)
      .follows({ records: ['container.started'], answers: ['StartContainer OK'] });
  });

  it('makes the task and starts it, by one record, where none could be made ahead', () => {
    given(...justCreated, fails('CreateTask'), succeeds('DeleteTask'))
      .when(startContainer)
      .follows({ records: ['container.starting'], asks: ['CreateTask', 'StartTask'] });
  });

  it('waits for what was made ahead to be deleted, and fails where that can not be', () => {
    const deleting = [...justCreated, fails('CreateTask'), startContainer] as const;
    given(...deleting)
      .when(succeeds('DeleteTask'))
      .follows({ asks: ['CreateTask', 'StartTask'] });
    given(...deleting)
      .when(fails('DeleteTask'))
      .follows({ records: ['container.exited'], asks: ['DeleteTask'], answers: ['StartContainer HostFailed'] });
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
    given(createdContainer, startContainer)
      .when(fails('StartTask', 'RuntimeFailed'))
      .follows({
        records: ['container.exited'],
        asks: ['DeleteTask'],
        answers: ['StartContainer RuntimeFailed'],
      });
  });
});

describe('a task that was made ahead', () => {
  it('is deleted by the next life of the daemon, once the shim was asked', () => {
    given(createdContainer, restart())
      .when(shimSays({ status: 'created' }))
      .follows({ asks: ['DeleteTask'] });
    given(createdContainer, restart(), shimSays({ status: 'created' }), startContainer)
      .when(succeeds('DeleteTask'))
      .follows({ asks: ['CreateTask', 'StartTask'] });
  });

  it('ends unheard while it is deleted: its exit is not that of the task that a start makes then', () => {
    const exit = { pid: 12, exitStatus: 137, exitedAtNs: '1800000000000000001', oomKills: 0 };
    const isKilled: Happening = (_tell, state) =>
      assert.equal(
        newsIn(state, { kind: 'TaskExited', podSandboxId: POD, containerId: CONTAINER, execId: null, exit }),
        null,
      );
    given(createdContainer, restart(), shimSays({ status: 'created' }), isKilled, startContainer, isKilled)
      .when(inTurn(succeeds('DeleteTask'), allSucceeds))
      .follows({ asks: ['CreateTask', 'StartTask'], records: ['container.started'], answers: ['StartContainer OK'] });
  });

  it('is deleted when its shim ended, and then the shim is cleared up', () => {
    given(createdContainer)
      .when(shimIsLost, allSucceeds)
      .follows({ asks: ['DeleteTask', 'StopShim'] });
  });

  it('is deleted before limits are changed, which then are written into the spec', () => {
    given(createdContainer)
      .when(call({ method: 'UpdateContainerResources', containerId: CONTAINER, resources: {} }), allSucceeds)
      .follows({
        records: ['container.updated'],
        asks: ['DeleteTask', 'UpdateContainer'],
        answers: ['UpdateContainerResources OK'],
      });
  });

  it('goes with its pod', () => {
    given(createdContainer)
      .when(stopPod, allSucceeds)
      .follows({
        records: ['sandbox.stopping', 'sandbox.stopped'],
        asks: ['DeleteTask', 'DetachNetwork', 'StopShim', 'UnpinNamespaces'],
        answers: ['StopPodSandbox OK'],
      });
  });

  it('is made for nobody who may never come back', () => {
    given(pulledImage, readyPod, createContainer(), callerGoes)
      .when(allSucceeds)
      .follows({
        records: ['container.created'],
        asks: ['wait: claim'],
        answers: ['CreateContainer OK'],
      });
  });
});

describe('a start behind a shim that has ended', () => {
  it('fails where that can not be cleared up, so that no other can be started', () => {
    given(createdContainer, shimIsLost, startContainer)
      .when(succeeds('DeleteTask'), fails('StopShim'))
      .follows({
        records: ['container.exited'],
        asks: ['StopShim', 'wait: retry'],
        answers: ['StartContainer ShimFailed'],
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

  it('is interrupted for who joined it meanwhile, since nothing of the node has failed', () => {
    given(createdContainer, startContainer, restart(), startContainer)
      .when(shimSays({ status: 'absent' }))
      .follows({ records: ['container.exited'], asks: ['DeleteTask'], answers: ['StartContainer Interrupted'] });
    given(createdContainer, startContainer, restart(), startContainer)
      .when(shimSays({ status: 'created' }), succeeds('DeleteTask'))
      .follows({
        records: ['container.lost', 'container.exited'],
        asks: ['DeleteTask'],
        answers: ['StartContainer Interrupted'],
      });
  });

  it('has failed when its process ended before it had begun, and what that ended with is no exit of the container', () => {
    const exit = { pid: 12, exitStatus: 1, exitedAtNs: '1800000000000000001', oomKills: 0 };
    const settled = given(createdContainer, startContainer, restart()).when(
      shimSays({ status: 'stopped', exit, neverBegan: true }),
    );
    const { state } = settled;
    const container = state.containers.get(CONTAINER) ?? assert.fail('it is not there');
    const { exitStatus, reason, message } = containerExitOf(container) ?? assert.fail('it has not exited');
    assert.deepEqual([exitStatus, reason], [128, 'StartError']);
    assert.match(message, /^the daemon ended .* before its command began$/);
    const told = { kind: 'TaskExited', podSandboxId: POD, containerId: CONTAINER, execId: null, exit } as const;
    assert.equal(newsIn(state, told), null);
    settled.follows({ records: ['container.exited'], asks: ['DeleteTask'] });
  });
});
