/** RemoveImage: the image is gone for clients at once, and from the disk as soon as nothing is made of it any more. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FACTS } from '../../simulation/facts.ts';
import { IMAGE, NEWER_IMAGE } from '../../simulation/images.ts';
import { given, type Happening } from '../given.ts';
import {
  allSucceeds,
  call,
  createContainer,
  createdContainer,
  fails,
  IMAGE_NAME,
  inTurn,
  isDue,
  nodeStarts,
  pulledImage,
  pullImage,
  readyPod,
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

  it('counts nothing as part of an image pulled again that its deletion may have taken', () => {
    const [manifest = '', ...rest] = IMAGE.blobs;
    const image = {
      ...IMAGE,
      manifestDigest: NEWER_IMAGE.manifestDigest,
      blobs: [NEWER_IMAGE.manifestDigest, ...rest],
    };
    const { state } = given(pulledImage, pullImage, removeImage).when(succeeds('PullImage', { image }));
    assert.deepEqual(state.images.get(IMAGE.id)?.content.blobs, image.blobs);
    const before = given(nodeStarts({ ...FACTS, rules: 10 }), pulledImage, pullImage, removeImage);
    const old = before.when(succeeds('PullImage', { image })).state;
    assert.ok(old.images.get(IMAGE.id)?.content.blobs.includes(manifest));
  });

  it('takes what only images share that go at once, and by rules 10 left it to be collected (C13)', () => {
    const shared = IMAGE.layers[0]?.chainId ?? '';
    const newer = inTurn(pullImage, succeeds('PullImage', { image: { ...NEWER_IMAGE, repoTags: [other] } }));
    const removeOther = call({ method: 'RemoveImage', image: other });
    const taken = (...before: readonly Happening[]): string[] => {
      const { state } = given(...before, pulledImage, newer, removeImage).when(removeOther);
      return [...state.effects.values()].flatMap(({ intent }) =>
        intent.kind === 'DeleteImageContent' ? intent.chainIds : [],
      );
    };
    assert.deepEqual(
      taken().filter((chainId) => chainId === shared),
      [shared],
    );
    assert.ok(!taken(nodeStarts({ ...FACTS, rules: 10 })).includes(shared));
  });

  it('takes an image that is pulled again and removed again while it goes, once no container stands on it', () => {
    const again = inTurn(pulledImage, pullImage, removeImage, succeeds('PullImage'));
    given(again)
      .when(removeImage, succeeds('DeleteImageContent'), succeeds('DeleteImageContent'))
      .follows({
        records: ['image.removing', 'image.removed'],
        asks: ['DeleteImageContent'],
        answers: ['RemoveImage OK'],
      });
    const newer = inTurn(pullImage, succeeds('PullImage', { image: { ...NEWER_IMAGE, repoTags: [other] } }));
    const removeOther = call({ method: 'RemoveImage', image: other });
    const used = given(readyPod, newer, again, createContainer()).when(removeImage, removeOther);
    const goes = [...used.state.effects.values()].flatMap(({ intent }) =>
      intent.kind === 'DeleteImageContent' ? [intent.chainIds] : [],
    );
    assert.deepEqual(goes, [[], [NEWER_IMAGE.layers[1]?.chainId]]);
    given(readyPod, again, createContainer(), removeImage).when(succeeds('DeleteImageContent')).follows({});
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
