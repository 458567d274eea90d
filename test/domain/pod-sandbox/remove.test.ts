/** RemovePodSandbox: stops what runs, then removes containers and files; nothing of the pod is left, its name is free. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  allSucceeds,
  exitedContainer,
  exits,
  fails,
  isDue,
  readyPod,
  removePod,
  runningContainer,
  stopPod,
  succeeds,
} from '../happenings.ts';

describe('RemovePodSandbox', () => {
  it('removes the files of a stopped pod, then the pod', () => {
    given(readyPod, stopPod, allSucceeds)
      .when(removePod, allSucceeds)
      .follows({
        records: ['sandbox.removing', 'sandbox.removed'],
        asks: ['CleanPodSandbox'],
        answers: ['RemovePodSandbox OK'],
      });
  });

  it('stops a pod that was not stopped before', () => {
    given(readyPod)
      .when(removePod, allSucceeds)
      .follows({
        records: ['sandbox.removing', 'sandbox.stopped', 'sandbox.removed'],
        asks: ['DetachNetwork', 'StopShim', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RemovePodSandbox OK'],
      });
  });

  it('removes its containers with it', () => {
    given(exitedContainer)
      .when(removePod, allSucceeds)
      .follows({
        records: ['sandbox.removing', 'container.removing', 'container.removed', 'sandbox.stopped', 'sandbox.removed'],
        asks: ['DetachNetwork', 'StopShim', 'CleanContainer', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RemovePodSandbox OK'],
      });
  });

  it('kills containers that run, and removes nothing of them before their exit is written down', () => {
    given(runningContainer)
      .when(removePod, succeeds('KillTask'))
      .follows({
        records: ['sandbox.removing', 'container.removing', 'container.stopping'],
        asks: ['KillTask', 'wait: exit'],
      });
    given(runningContainer, removePod, succeeds('KillTask'))
      .when(exits(137), allSucceeds)
      .follows({
        records: ['container.exited', 'container.removed', 'sandbox.stopped', 'sandbox.removed'],
        asks: ['DeleteTask', 'CleanContainer', 'DetachNetwork', 'StopShim', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RemovePodSandbox OK'],
      });
  });

  it('answers OK when there is no such pod', () => {
    given()
      .when(removePod)
      .follows({ answers: ['RemovePodSandbox OK'] });
  });

  it('fails when something is left, keeps the pod, and goes on by itself', () => {
    const owing = [readyPod, stopPod, allSucceeds, removePod] as const;
    given(...owing)
      .when(fails('CleanPodSandbox'))
      .follows({ asks: ['wait: retry'], answers: ['RemovePodSandbox HostFailed'] });
    given(...owing, fails('CleanPodSandbox'))
      .when(isDue('retry'), allSucceeds)
      .follows({ records: ['undo.retried', 'sandbox.removed'], asks: ['CleanPodSandbox'] });
  });
});
