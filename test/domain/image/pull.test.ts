/** PullImage: one download for all who ask for the same, written down whole or not at all. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { given } from '../given.ts';
import { call, callerGoes, fails, IMAGE_NAME, pulledImage, pullImage, restart, succeeds } from '../happenings.ts';

describe('PullImage', () => {
  it('fetches the image, then writes it down and answers', () => {
    given()
      .when(pullImage, succeeds('PullImage'))
      .follows({ records: ['image.pulled'], asks: ['PullImage'], answers: ['PullImage OK'] });
  });

  it('tells whoever fetches it which runtime handler it is for', () => {
    const kata = call({ method: 'PullImage', image: IMAGE_NAME, credentials: null, runtimeHandler: 'kata' });
    const [asked] = given(kata).state.effects.values();
    assert.deepEqual(asked?.intent, {
      kind: 'PullImage',
      reference: IMAGE_NAME,
      credentials: null,
      runtimeHandler: 'kata',
    });
  });

  it('fetches once for all who ask meanwhile', () => {
    given(pullImage)
      .when(pullImage, succeeds('PullImage'))
      .follows({ records: ['image.pulled'], answers: ['PullImage OK', 'PullImage OK'] });
  });

  it('asks the registry again for an image that is there, since its name may stand for another by now', () => {
    given(pulledImage)
      .when(pullImage, succeeds('PullImage'))
      .follows({ records: ['image.pulled'], asks: ['PullImage'], answers: ['PullImage OK'] });
  });

  it('fails with the words of the registry, and leaves nothing', () => {
    given(pullImage)
      .when(fails('PullImage', 'RegistryFailed'))
      .follows({ answers: ['PullImage RegistryFailed'] });
  });

  it('runs on when its caller goes (C5)', () => {
    given(pullImage, callerGoes)
      .when(succeeds('PullImage'))
      .follows({ records: ['image.pulled'], answers: ['PullImage OK'] });
  });

  it('is refused for what is no name of an image', () => {
    given()
      .when(call({ method: 'PullImage', image: 'UPPER', credentials: null }))
      .follows({ answers: ['PullImage InvalidField'] });
  });

  it('is over with the daemon: the client asks again (C19)', () => {
    given(pullImage)
      .when(restart())
      .follows({ answers: ['PullImage Interrupted'] });
  });
});
