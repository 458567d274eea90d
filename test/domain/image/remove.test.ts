/** RemoveImage: the image is gone for clients at once, and from the disk as soon as nothing is made of it any more. */
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import {
  allSucceeds,
  call,
  createdContainer,
  fails,
  IMAGE_NAME,
  isDue,
  pulledImage,
  pullImage,
  removeContainer,
  restart,
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
