/** The start of the daemon, and a reboot of the node. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  createdContainer,
  exitedContainer,
  readyPod,
  restart,
  runningContainer,
  runPod,
  stopPod,
} from '../happenings.ts';

const reboot = restart({ rebooted: true });

describe('a start of the daemon', () => {
  it('asks for nothing where there is nothing', () => {
    given().when(restart()).follows({});
  });

  it('tells every caller of before that the call was interrupted', () => {
    given(readyPod, stopPod, call({ method: 'PullImage', image: 'registry.test/app:1', credentials: null }))
      .when(restart())
      .follows({
        asks: ['DetachNetwork', 'StopShim'],
        answers: ['StopPodSandbox Interrupted', 'PullImage Interrupted'],
      });
  });
});

describe('a reboot of the node', () => {
  it('has every READY pod lost', () => {
    given(readyPod)
      .when(reboot)
      .follows({ records: ['sandbox.lost'] });
  });

  it('has ended what ran, with a code that nobody knows', () => {
    given(runningContainer)
      .when(reboot)
      .follows({ records: ['sandbox.lost', 'container.exited'], asks: ['DeleteTask'] });
  });

  it('leaves containers that did not run as they were', () => {
    given(createdContainer)
      .when(reboot)
      .follows({ records: ['sandbox.lost'], asks: ['DeleteTask'] });
    given(exitedContainer)
      .when(reboot)
      .follows({ records: ['sandbox.lost'] });
  });

  it('has undone what was being made', () => {
    given(runPod())
      .when(reboot, allSucceeds)
      .follows({
        records: ['sandbox.failed', 'sandbox.removed'],
        asks: ['DetachNetwork', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RunPodSandbox Interrupted'],
      });
  });

  it('frees the address of a pod of before when that is stopped', () => {
    given(runningContainer, reboot, allSucceeds)
      .when(stopPod, allSucceeds)
      .follows({
        records: ['sandbox.stopping', 'sandbox.stopped'],
        asks: ['DetachNetwork', 'StopShim', 'UnpinNamespaces'],
        answers: ['StopPodSandbox OK'],
      });
  });
});
