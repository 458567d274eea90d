/** LoadImages: images from an archive that a client uploads. */
import { describe, it } from 'node:test';
import { IMAGE } from '../../simulation/images.ts';
import { given } from '../given.ts';
import { call, fails, succeeds } from '../happenings.ts';

const load = call({ method: 'LoadImages', newId: 'upload' });

describe('LoadImages', () => {
  it('writes down every image of the archive, and answers', () => {
    given()
      .when(load, succeeds('LoadImages', { images: [IMAGE] }))
      .follows({ records: ['image.pulled'], asks: ['LoadImages'], answers: ['LoadImages OK'] });
  });

  it('leaves nothing of an archive that is no good', () => {
    given(load)
      .when(fails('LoadImages', 'InvalidField'))
      .follows({ answers: ['LoadImages InvalidField'] });
  });
});
