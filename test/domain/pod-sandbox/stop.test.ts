/** StopPodSandbox: containers first, then what holds the pod and its network; and pods that fall over by themselves. */
import { describe, it } from 'node:test';
import { FACTS } from '../../simulation/facts.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  exits,
  fails,
  isDue,
  nodeStarts,
  pauseExits,
  POD,
  readyPod,
  readyPodWithPause,
  runningContainer,
  runPod,
  shimIsLost,
  shimSays,
  stopPod,
  succeeds,
} from '../happenings.ts';

describe('StopPodSandbox', () => {
  it('detaches the network, then gives up the namespaces, then answers', () => {
    given(readyPod)
      .when(stopPod, allSucceeds)
      .follows({
        records: ['sandbox.stopping', 'sandbox.stopped'],
        asks: ['DetachNetwork', 'StopShim', 'UnpinNamespaces'],
        answers: ['StopPodSandbox OK'],
      });
  });

  it('kills the tasks of containers before anything else goes', () => {
    given(runningContainer)
      .when(stopPod)
      .follows({ records: ['sandbox.stopping', 'container.stopping'], asks: ['KillTask'] });
  });

  it('fails with the words of the signal that could not be sent, and its shim is asked later how the task does', () => {
    given(runningContainer, stopPod)
      .when(fails('KillTask', 'RuntimeFailed'))
      .follows({ answers: ['StopPodSandbox RuntimeFailed'], asks: ['wait: exit'] });
  });

  it('goes on when the last exit is written down and its task deleted (C3)', () => {
    given(runningContainer, stopPod, succeeds('KillTask'))
      .when(exits(137), allSucceeds)
      .follows({
        records: ['container.exited', 'sandbox.stopped'],
        asks: ['DeleteTask', 'DetachNetwork', 'StopShim', 'UnpinNamespaces'],
        answers: ['StopPodSandbox OK'],
      });
  });

  it('answers OK for a pod that is stopped already, or is not there', () => {
    given(readyPod, stopPod, allSucceeds)
      .when(stopPod)
      .follows({ answers: ['StopPodSandbox OK'] });
    given()
      .when(stopPod)
      .follows({ answers: ['StopPodSandbox OK'] });
  });

  it('does nothing twice when it is asked for twice, and answers both', () => {
    given(readyPod, stopPod)
      .when(stopPod, allSucceeds)
      .follows({
        records: ['sandbox.stopped'],
        asks: ['UnpinNamespaces'],
        answers: ['StopPodSandbox OK', 'StopPodSandbox OK'],
      });
  });

  it('waits for what is being made before it is unmade', () => {
    given(runPod())
      .when(stopPod)
      .follows({ records: ['sandbox.stopping'] });
  });

  it('tells who waits for the pod that it was stopped while it was being made (rules 11)', () => {
    given(runPod(), stopPod)
      .when(allSucceeds)
      .follows({
        records: ['sandbox.stopped'],
        asks: ['DetachNetwork', 'UnpinNamespaces'],
        answers: ['StopPodSandbox OK', 'RunPodSandbox Cancelled'],
      });
    given(nodeStarts({ ...FACTS, rules: 10 }), runPod(), stopPod)
      .when(allSucceeds)
      .follows({
        records: ['sandbox.stopped'],
        asks: ['DetachNetwork', 'UnpinNamespaces'],
        answers: ['StopPodSandbox OK'],
      });
  });

  it('fails with the words of what could not be undone, goes on with the rest, and tries again', () => {
    given(readyPod, stopPod)
      .when(fails('DetachNetwork', 'CniFailed'), allSucceeds)
      .follows({ asks: ['UnpinNamespaces', 'wait: retry'], answers: ['StopPodSandbox CniFailed'] });
  });
});

describe('a pod with a pause task', () => {
  it('has its task killed while its network is detached', () => {
    given(readyPodWithPause)
      .when(stopPod)
      .follows({ records: ['sandbox.stopping'], asks: ['DetachNetwork', 'KillTask'] });
  });

  it('has it deleted once its exit is seen (C3), then shim and network namespace go', () => {
    given(readyPodWithPause, stopPod, succeeds('KillTask'))
      .when(pauseExits, allSucceeds)
      .follows({
        records: ['sandbox.stopped'],
        asks: ['DeleteTask', 'StopShim', 'RemoveNetns'],
        answers: ['StopPodSandbox OK'],
      });
  });

  it('has its shim asked when a killed task does not tell of its end', () => {
    given(readyPodWithPause, stopPod, succeeds('KillTask'))
      .when(isDue('exit'))
      .follows({ asks: ['ReconnectShim'] });
  });

  it('has it asked again when it was asked too soon: the task was said to run, and no exit was told of since (rules 10)', () => {
    const asked = [readyPodWithPause, stopPod, succeeds('KillTask'), isDue('exit')];
    const runs = shimSays({ containerId: POD, status: 'running' });
    given(...asked)
      .when(runs)
      .follows({ asks: ['wait: exit'] });
    given(...asked, runs)
      .when(isDue('exit'))
      .follows({ asks: ['ReconnectShim'] });
    given(nodeStarts({ ...FACTS, rules: 9 }), ...asked)
      .when(runs)
      .follows({});
  });

  it('is lost when its task ends by itself; it is for the client to stop it', () => {
    given(readyPodWithPause)
      .when(pauseExits)
      .follows({ records: ['sandbox.lost'] });
  });
});

describe('a pod whose shim is lost', () => {
  it('stands without it, since its namespaces are pinned; its containers are lost, and end with a code nobody knows', () => {
    given(runningContainer)
      .when(shimIsLost, allSucceeds)
      .follows({ records: ['container.lost', 'container.exited'], asks: ['DeleteTask', 'StopShim'] });
  });
});
