/** RemoveContainer: ends what runs, then removes the files; nothing of the container is left. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  allSucceeds,
  createdContainer,
  exitedContainer,
  exits,
  fails,
  isDue,
  removeContainer,
  runningContainer,
  succeeds,
} from '../happenings.ts';

describe('RemoveContainer', () => {
  it('removes the files and answers; the pod keeps its shim', () => {
    given(exitedContainer)
      .when(removeContainer, allSucceeds)
      .follows({
        records: ['container.removing', 'container.removed'],
        asks: ['CleanContainer'],
        answers: ['RemoveContainer OK'],
      });
  });

  it('removes one that never ran', () => {
    given(createdContainer)
      .when(removeContainer, allSucceeds)
      .follows({
        records: ['container.removing', 'container.removed'],
        asks: ['DeleteTask', 'CleanContainer'],
        answers: ['RemoveContainer OK'],
      });
  });

  it('kills one that runs, and waits for its exit', () => {
    given(runningContainer)
      .when(removeContainer)
      .follows({ records: ['container.removing', 'container.stopping'], asks: ['KillTask'] });
    given(runningContainer, removeContainer, succeeds('KillTask'))
      .when(exits(137), allSucceeds)
      .follows({
        records: ['container.exited', 'container.removed'],
        asks: ['DeleteTask', 'CleanContainer'],
        answers: ['RemoveContainer OK'],
      });
  });

  it('asks for its files to be removed while its task is being deleted, and deletes both anew where that fails', () => {
    given(runningContainer, exits())
      .when(removeContainer)
      .follows({ records: ['container.removing'], asks: ['CleanContainer'] });
    given(runningContainer, exits(), removeContainer, fails('DeleteTask'))
      .when(fails('CleanContainer'))
      .follows({ asks: ['wait: retry'], answers: ['RemoveContainer HostFailed'] });
    given(runningContainer, exits(), removeContainer, fails('DeleteTask'), fails('CleanContainer'))
      .when(isDue('retry'), allSucceeds)
      .follows({
        records: ['undo.retried', 'container.removed'],
        asks: ['DeleteTask', 'CleanContainer'],
      });
  });

  it('answers OK when there is no such container', () => {
    given()
      .when(removeContainer)
      .follows({ answers: ['RemoveContainer OK'] });
  });

  it('fails when something is left, keeps the container, and goes on by itself (C6)', () => {
    given(exitedContainer, removeContainer)
      .when(fails('CleanContainer'))
      .follows({ asks: ['wait: retry'], answers: ['RemoveContainer HostFailed'] });
    given(exitedContainer, removeContainer, fails('CleanContainer'))
      .when(isDue('retry'), allSucceeds)
      .follows({ records: ['undo.retried', 'container.removed'], asks: ['CleanContainer'] });
  });
});
