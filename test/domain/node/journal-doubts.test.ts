/** A journal that may lack records, and the operator's word that it is all there is. */
import { describe, it } from 'node:test';
import { NODE_STREAM } from '../../../src/domain/model/records.ts';
import { type Happening, given } from '../given.ts';
import {
  allSucceeds,
  call,
  callerGoes,
  containerConfig,
  createContainer,
  pauseExits,
  podConfig,
  pulledImage,
  readyPod,
  removePod,
  restart,
  runPod,
  runPodWithPause,
} from '../happenings.ts';

const acknowledge = call({ method: 'AcknowledgeJournal', reason: 'It was restored from a backup.' });
const journalIsDoubted: Happening = (tell) =>
  tell({ type: 'journal.doubted', body: { what: 'Its newest records are missing.' }, stream: NODE_STREAM, call: null });

describe('a creation that a doubted journal left alone', () => {
  it('stays as it is when its shim answers, or the task of its pod ends: it may have succeeded since, and be running', () => {
    given(pulledImage, readyPod, createContainer(), journalIsDoubted)
      .when(restart(), allSucceeds)
      .follows({ asks: ['ReconnectShim'], answers: ['CreateContainer Interrupted'] });
    given(runPodWithPause, journalIsDoubted, restart()).when(pauseExits).follows({});
  });

  it('goes on with its removal, where somebody asked for that before: its pod could not be removed else', () => {
    given(pulledImage, readyPod, createContainer(), removePod, journalIsDoubted)
      .when(restart())
      .follows({
        asks: ['DetachNetwork', 'StopShim', 'CleanContainer'],
        answers: ['CreateContainer Interrupted', 'RemovePodSandbox Interrupted'],
      });
    given(runPod(), removePod, journalIsDoubted)
      .when(restart(), allSucceeds)
      .follows({
        records: ['sandbox.stopped', 'sandbox.removed'],
        asks: ['DetachNetwork', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RunPodSandbox Interrupted', 'RemovePodSandbox Interrupted'],
      });
  });

  it('goes on being undone once its pod is to be removed, which waits for it', () => {
    const undone = [
      pulledImage,
      readyPod,
      createContainer(),
      restart(),
      journalIsDoubted,
      restart({ rebooted: true }),
    ] as const;
    given(...undone)
      .when(removePod, allSucceeds)
      .follows({
        records: ['sandbox.removing', 'container.removed', 'sandbox.stopped', 'sandbox.removed'],
        asks: ['DetachNetwork', 'StopShim', 'CleanContainer', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RemovePodSandbox OK'],
      });
  });

  it('is taken up when somebody knows of the journal', () => {
    given(pulledImage, readyPod, createContainer(), journalIsDoubted, restart(), allSucceeds)
      .when(acknowledge)
      .follows({
        records: ['journal.acknowledged', 'container.failed'],
        asks: ['CleanContainer'],
        answers: ['AcknowledgeJournal OK'],
      });
  });

  it('is undone once it is asked for again, and whoever asks is told so', () => {
    given(runPod(), journalIsDoubted, restart())
      .when(runPod(podConfig(), 'another-id'), allSucceeds)
      .follows({
        records: ['call.joined', 'sandbox.failed', 'sandbox.removed'],
        asks: ['DetachNetwork', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['RunPodSandbox Interrupted'],
      });
    given(pulledImage, readyPod, createContainer(), journalIsDoubted, restart(), allSucceeds)
      .when(createContainer(containerConfig(), 'another-id'), allSucceeds)
      .follows({
        records: ['call.joined', 'container.failed', 'container.removed'],
        asks: ['CleanContainer'],
        answers: ['CreateContainer Interrupted'],
      });
  });
});

describe('AcknowledgeJournal', () => {
  it('has pods that are half made undone, and gives what is unclaimed its time', () => {
    given(runPod(), journalIsDoubted, restart())
      .when(acknowledge, allSucceeds)
      .follows({
        records: ['journal.acknowledged', 'sandbox.failed', 'sandbox.removed'],
        asks: ['DetachNetwork', 'UnpinNamespaces', 'CleanPodSandbox'],
        answers: ['AcknowledgeJournal OK'],
      });
    const unclaimed = [runPod(), callerGoes, allSucceeds] as const;
    given(...unclaimed, journalIsDoubted, restart(), allSucceeds)
      .when(acknowledge)
      .follows({ records: ['journal.acknowledged'], asks: ['wait: claim'], answers: ['AcknowledgeJournal OK'] });
    given(pulledImage, readyPod, createContainer(), callerGoes, allSucceeds, journalIsDoubted, restart(), allSucceeds)
      .when(acknowledge)
      .follows({ records: ['journal.acknowledged'], asks: ['wait: claim'], answers: ['AcknowledgeJournal OK'] });
  });

  it('takes the journal for whole from now on', () => {
    given(journalIsDoubted)
      .when(acknowledge)
      .follows({ records: ['journal.acknowledged'], answers: ['AcknowledgeJournal OK'] });
  });

  it('is refused where nothing is doubted', () => {
    given()
      .when(acknowledge)
      .follows({ answers: ['AcknowledgeJournal WrongState'] });
  });
});
