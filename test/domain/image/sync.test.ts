/** SyncImage: that an image is on the disk is written down after its pull was answered, and owed until then. */
import { describe, it } from 'node:test';
import { IMAGE } from '../../simulation/images.ts';
import { given } from '../given.ts';
import { call, fails, IMAGE_NAME, isDue, pullImage, restart, succeeds } from '../happenings.ts';

const unsynced = { image: IMAGE, unsynced: true } as const;
const isPulled = succeeds('PullImage', unsynced);
const removeImage = call({ method: 'RemoveImage', image: IMAGE_NAME });

describe('SyncImage', () => {
  it('is asked for in the background of a pull that is answered', () => {
    given(pullImage)
      .when(isPulled)
      .follows({ records: ['image.pulled'], asks: ['SyncImage'], answers: ['PullImage OK'] });
  });

  it('is not asked for when the disk has all of it', () => {
    given(pullImage)
      .when(succeeds('PullImage'))
      .follows({ records: ['image.pulled'], answers: ['PullImage OK'] });
  });

  it('is over once it has ended, and owed until then, whatever ends in between', () => {
    given(pullImage, isPulled, succeeds('SyncImage')).when(restart()).follows({});
    given(pullImage, isPulled)
      .when(restart())
      .follows({ asks: ['SyncImage'] });
    given(pullImage, isPulled)
      .when(restart({ rebooted: true }), succeeds('SyncImage'), restart())
      .follows({ asks: ['SyncImage'] });
  });

  it('is asked for again when something was pulled while it was under way', () => {
    given(pullImage, isPulled)
      .when(pullImage, isPulled, succeeds('SyncImage'))
      .follows({ records: ['image.pulled'], asks: ['PullImage', 'SyncImage'], answers: ['PullImage OK'] });
  });

  it('is tried again when the disk fails', () => {
    given(pullImage, isPulled)
      .when(fails('SyncImage'), isDue('retry'))
      .follows({ asks: ['wait: retry', 'SyncImage'] });
  });

  it('takes the image away when not enough of it is left', () => {
    given(pullImage, isPulled)
      .when(restart({ rebooted: true }), fails('SyncImage', 'ImageInvalid'), succeeds('DeleteImageContent'))
      .follows({ records: ['image.removing', 'image.removed'], asks: ['SyncImage', 'DeleteImageContent'] });
  });

  it('comes to its end before the image is removed', () => {
    given(pullImage, isPulled)
      .when(removeImage, succeeds('SyncImage'))
      .follows({ records: ['image.removing'], asks: ['DeleteImageContent'], answers: ['RemoveImage OK'] });
  });
});
