/** RemoveImage: the image is gone for clients at once, and from the disk as soon as nothing is made of it any more. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FACTS } from '../../simulation/facts.ts';
import { IMAGE } from '../../simulation/images.ts';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  createdContainer,
  fails,
  IMAGE_NAME,
  isDue,
  nodeStarts,
  pulledImage,
  pullImage,
  removeContainer,
  restart,
  runPodWithPause,
  succeeds,
} from '../happenings.ts';

const removeImage = call({ method: 'RemoveImage', image: IMAGE_NAME });

describe('RemoveImage', () => {
  it('answers at once; then the content is removed', () => {
    given(pulledImage)
      .when(removeImage, succeeds('DeleteImageContent'))
      .follows({
        records: ['image.removing', 'image.removed'],
        asks: ['DeleteImageContent'],
        answers: ['RemoveImage OK'],
      });
  });

  it('leaves the content to containers that are made of it, until the last is removed', () => {
    given(createdContainer)
      .when(removeImage)
      .follows({ records: ['image.removing'], answers: ['RemoveImage OK'] });
    given(createdContainer, removeImage)
      .when(removeContainer, allSucceeds)
      .follows({
        records: ['container.removing', 'container.removed', 'image.removed'],
        asks: ['DeleteTask', 'CleanContainer', 'DeleteImageContent'],
        answers: ['RemoveContainer OK'],
      });
  });

  it('answers OK when there is no such image', () => {
    given()
      .when(removeImage)
      .follows({ answers: ['RemoveImage OK'] });
  });

  it('is tried again when the content could not be removed', () => {
    given(pulledImage, removeImage)
      .when(fails('DeleteImageContent'), isDue('retry'))
      .follows({ asks: ['wait: retry', 'DeleteImageContent'] });
  });

  it('is carried on after a restart of the daemon (C19)', () => {
    given(pulledImage, removeImage)
      .when(restart(), succeeds('DeleteImageContent'))
      .follows({ records: ['image.removed'], asks: ['DeleteImageContent'] });
  });

  const other = 'registry.example/other:1';
  const pullOther = call({ method: 'PullImage', image: other, credentials: null });

  it('goes on beside pulls, whose content stays, and by rules 10 comes after them (C13)', () => {
    const { state, follows } = given(pulledImage, pullOther).when(removeImage);
    follows({ records: ['image.removing'], asks: ['DeleteImageContent'], answers: ['RemoveImage OK'] });
    const [deletion] = [...state.effects.values()].filter(({ intent }) => intent.kind === 'DeleteImageContent');
    assert.deepEqual(deletion?.intent.kind === 'DeleteImageContent' && deletion.intent.fetching, [other]);
    given(nodeStarts({ ...FACTS, rules: 10 }), pulledImage, pullOther)
      .when(removeImage, fails('PullImage'))
      .follows({
        records: ['image.removing'],
        asks: ['DeleteImageContent'],
        answers: ['RemoveImage OK', 'PullImage HostFailed'],
      });
  });

  it('holds no pod up whose sandbox image somebody else pulls meanwhile', () => {
    given(nodeStarts({ ...FACTS, sandboxImage: IMAGE_NAME }), pulledImage, pullImage, removeImage, runPodWithPause)
      .when(succeeds('PullImage'))
      .follows({
        records: ['image.pulled', 'sandbox.requested'],
        asks: ['PreparePodSandbox', 'CreateNetns'],
        answers: ['PullImage OK'],
      });
  });

  it('leaves an image alone that was pulled again meanwhile, and lets it be synced', () => {
    given(pulledImage, pullImage, removeImage)
      .when(succeeds('PullImage', { image: IMAGE, unsynced: true }), succeeds('DeleteImageContent'))
      .follows({ records: ['image.pulled'], asks: ['SyncImage'], answers: ['PullImage OK'] });
  });

  it('is over before the same image is pulled again', () => {
    given(pulledImage, removeImage).when(pullImage).follows({});
    given(pulledImage, removeImage, pullImage)
      .when(allSucceeds)
      .follows({
        records: ['image.removed', 'image.pulled'],
        asks: ['PullImage'],
        answers: ['PullImage OK'],
      });
  });
});
