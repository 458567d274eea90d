/** What a restart of the daemon makes of a pod, by how far it was: creations are undone, the rest is carried on (C19). */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  allSucceeds,
  fails,
  POD,
  readyPod,
  readyPodWithPause,
  removePod,
  restart,
  runningContainer,
  runPod,
  shimIsGone,
  stopPod,
  succeeds,
} from '../happenings.ts';

describe('after a restart of the daemon', () => {
  it('a pod that was being made is undone, whatever of it had been asked for, and its call is told', () => {
    given(runPod(), succeeds('PinNamespaces'))
      .when(restart(), allSucceeds)
      .follows({
        records: ['sandbox.failed', 'sandbox.removed'],
        asks: ['DetachNetwork', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RunPodSandbox Interrupted'],
      });
  });

  it('a READY pod stands as it is, and its shim is asked how it does', () => {
    given(readyPod)
      .when(restart())
      .follows({ asks: ['ReconnectShim'] });
  });

  it('a pod whose namespaces have gone is lost', () => {
    given(readyPod)
      .when(restart({ deadTasks: [POD] }))
      .follows({ records: ['sandbox.lost'], asks: ['ReconnectShim'] });
  });

  it('a pod with a shim has it asked what runs', () => {
    given(readyPodWithPause)
      .when(restart())
      .follows({ asks: ['ReconnectShim'] });
  });

  it('a pod whose pause task has died is lost at once, before its shim answers', () => {
    given(readyPodWithPause)
      .when(restart({ deadTasks: [POD] }))
      .follows({ records: ['sandbox.lost'], asks: ['ReconnectShim'] });
  });

  it('a pod is lost whose pause task had a shim that has gone', () => {
    given(readyPodWithPause, restart())
      .when(shimIsGone)
      .follows({ records: ['sandbox.lost'] });
  });

  it('a shim that does not answer is asked again later', () => {
    given(runningContainer, restart())
      .when(fails('ReconnectShim', 'ShimFailed'))
      .follows({ asks: ['wait: retry'] });
  });

  it('a stop goes on, though its caller is told that it was interrupted', () => {
    given(readyPod, stopPod)
      .when(restart(), allSucceeds)
      .follows({
        records: ['sandbox.stopped'],
        asks: ['DetachNetwork', 'StopShim', 'UnpinNamespaces'],
        answers: ['StopPodSandbox Interrupted'],
      });
  });

  it('a removal goes on to its end', () => {
    given(readyPod, removePod)
      .when(restart(), allSucceeds)
      .follows({
        records: ['sandbox.stopped', 'sandbox.removed'],
        asks: ['DetachNetwork', 'StopShim', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RemovePodSandbox Interrupted'],
      });
  });

  it('what was owed is tried at once (C6)', () => {
    given(readyPod, stopPod, fails('DetachNetwork', 'CniFailed'), allSucceeds)
      .when(restart())
      .follows({ records: ['undo.retried'], asks: ['DetachNetwork'] });
  });
});
