/** RunPodSandbox: what a pod is made of, in which order, and what becomes of one that can't be made. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { NamespaceMode } from '../../../src/domain/model/cri.ts';
import {
  allSucceeds,
  call,
  callerGoes,
  createContainer,
  fails,
  inTurn,
  isDue,
  networkIs,
  POD,
  podConfig,
  pulledImage,
  readyPod,
  removePod,
  runPod,
  runPodWithPause,
  succeeds,
} from '../happenings.ts';

const again = runPod(podConfig(), 'another-id');

describe('RunPodSandbox', () => {
  it('asks for files, namespaces and the network by one record', () => {
    given()
      .when(runPod())
      .follows({ records: ['sandbox.requested'], asks: ['PreparePodSandbox', 'PinNamespaces', 'AttachNetwork'] });
  });

  it('has a pod READY, and answers, when the last of them is there', () => {
    given(runPod(), succeeds('PinNamespaces'), succeeds('PreparePodSandbox'))
      .when(succeeds('AttachNetwork'))
      .follows({ records: ['sandbox.ready'], answers: ['RunPodSandbox OK'] });
  });

  it('asks for its shim when its files are there, and is none the worse when that fails or is not there yet', () => {
    given(runPod())
      .when(succeeds('PreparePodSandbox'))
      .follows({ asks: ['StartShim'] });
    given(runPod(), succeeds('PreparePodSandbox'), fails('StartShim', 'ShimFailed'), succeeds('PinNamespaces'))
      .when(succeeds('AttachNetwork'), succeeds('StopShim'))
      .follows({ records: ['sandbox.ready'], asks: ['StopShim'], answers: ['RunPodSandbox OK'] });
  });

  it("attaches no network to a pod that has the node's", () => {
    const namespaceOptions = { network: NamespaceMode.NODE, pid: NamespaceMode.CONTAINER };
    given()
      .when(runPod(podConfig({ linux: { securityContext: { namespaceOptions } } })))
      .follows({ records: ['sandbox.requested'], asks: ['PreparePodSandbox', 'PinNamespaces'] });
  });

  it('refuses what is not well made, and asks for nothing', () => {
    given()
      .when(runPod({}))
      .follows({ answers: ['RunPodSandbox InvalidField'] });
  });

  it('refuses a runtime handler that is not configured', () => {
    given()
      .when(call({ method: 'RunPodSandbox', newId: POD, config: podConfig(), runtimeHandler: 'unknown' }))
      .follows({ answers: ['RunPodSandbox UnknownRuntimeHandler'] });
  });

  it('refuses a pod that needs a network while there is none', () => {
    given(networkIs(null))
      .when(runPod())
      .follows({ answers: ['RunPodSandbox NetworkNotReady'] });
  });
});

describe('a pod with a pause task', () => {
  it('starts with its files and its network namespace', () => {
    given()
      .when(runPodWithPause)
      .follows({ records: ['sandbox.requested'], asks: ['PreparePodSandbox', 'CreateNetns'] });
  });

  it('has its network attached as soon as there is a namespace, beside what else is under way', () => {
    given(runPodWithPause)
      .when(succeeds('CreateNetns'))
      .follows({ asks: ['AttachNetwork'] });
  });

  it('gets its shim when its files are there, and its task when both shim and namespace are', () => {
    given(runPodWithPause)
      .when(succeeds('PreparePodSandbox'), succeeds('StartShim'), succeeds('CreateNetns'))
      .follows({ asks: ['StartShim', 'AttachNetwork', 'CreateTask', 'StartTask'] });
  });
});

describe('the same RunPodSandbox again (C5)', () => {
  it('joins the one that is under way, and both are answered', () => {
    given(runPod())
      .when(again, allSucceeds)
      .follows({
        records: ['call.joined', 'sandbox.ready'],
        asks: ['StartShim'],
        answers: ['RunPodSandbox OK', 'RunPodSandbox OK'],
      });
  });

  it('gets the pod that is there already', () => {
    given(readyPod)
      .when(again)
      .follows({ answers: ['RunPodSandbox OK'] });
  });

  it('is refused when it asks for something else by the same name', () => {
    given(readyPod)
      .when(runPod(podConfig({ hostname: 'other' }), 'another-id'))
      .follows({ answers: ['RunPodSandbox NameTaken'] });
  });

  it('makes another pod once the first is removed', () => {
    given(readyPod, removePod, allSucceeds)
      .when(again)
      .follows({ records: ['sandbox.requested'], asks: ['PreparePodSandbox', 'PinNamespaces', 'AttachNetwork'] });
  });
});

describe('a RunPodSandbox whose caller has gone (C5)', () => {
  const unclaimed = [runPod(), callerGoes, allSucceeds] as const;

  it('runs on, and its pod waits to be asked for', () => {
    given(runPod(), callerGoes)
      .when(allSucceeds)
      .follows({ records: ['sandbox.ready'], asks: ['StartShim', 'wait: claim'], answers: ['RunPodSandbox OK'] });
  });

  it('gives its pod to the next who asks for the same', () => {
    given(...unclaimed)
      .when(again)
      .follows({ records: ['sandbox.claimed'], answers: ['RunPodSandbox OK'] });
  });

  it('is undone when nobody does', () => {
    given(...unclaimed)
      .when(isDue('claim'), allSucceeds)
      .follows({
        records: ['sandbox.failed', 'sandbox.removed'],
        asks: ['DetachNetwork', 'StopShim', 'UnpinNamespaces', 'CleanPodSandbox'],
      });
  });

  it('waits once more while it has a container whose caller has gone as well', () => {
    const story = given(pulledImage, ...unclaimed, createContainer(), callerGoes, allSucceeds);
    story.when(isDue('claim')).follows({ asks: ['wait: claim'] });
    const undone = inTurn(isDue('claim'), allSucceeds);
    story.when(undone, undone).follows({
      records: ['container.failed', 'container.removed', 'sandbox.failed', 'sandbox.removed'],
      asks: ['CleanContainer', 'DetachNetwork', 'StopShim', 'UnpinNamespaces', 'CleanPodSandbox'],
    });
  });
});

describe('a pod that fails while it is made (C6)', () => {
  const attachFails = [
    runPod(),
    succeeds('PinNamespaces'),
    succeeds('PreparePodSandbox'),
    succeeds('StartShim'),
    fails('AttachNetwork', 'CniFailed'),
  ] as const;

  it('has the failed step undone as well, for it may have been done in part', () => {
    given(...attachFails.slice(0, -1))
      .when(fails('AttachNetwork', 'CniFailed'))
      .follows({ records: ['sandbox.failed'], asks: ['DetachNetwork', 'StopShim'] });
  });

  it('is undone in the order of the teardown, and only then is the caller told why', () => {
    given(...attachFails)
      .when(allSucceeds)
      .follows({
        records: ['sandbox.removed'],
        asks: ['UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RunPodSandbox CniFailed'],
      });
  });

  it('waits for what is still under way before anything is undone', () => {
    given(runPod())
      .when(fails('PinNamespaces'))
      .follows({ records: ['sandbox.failed'] });
    given(runPod(), succeeds('PinNamespaces'), succeeds('PreparePodSandbox'), fails('AttachNetwork', 'CniFailed'))
      .when(succeeds('StartShim'))
      .follows({ asks: ['DetachNetwork', 'StopShim'] });
  });

  it('is undone as far as it can be when an undo fails; the rest is owed and tried again', () => {
    given(...attachFails)
      .when(fails('DetachNetwork', 'CniFailed'), allSucceeds)
      .follows({ asks: ['UnpinNamespaces', 'wait: retry'], answers: ['RunPodSandbox CniFailed'] });
  });

  it('keeps its name while something is owed, and gives it back when that is done', () => {
    const owing = [...attachFails, fails('DetachNetwork', 'CniFailed'), allSucceeds] as const;
    given(...owing)
      .when(again)
      .follows({ answers: ['RunPodSandbox NameTaken'] });
    given(...owing)
      .when(isDue('retry'), allSucceeds)
      .follows({
        records: ['undo.retried', 'sandbox.removed'],
        asks: ['DetachNetwork', 'CleanPodSandbox'],
      });
  });
});
