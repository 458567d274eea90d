/** From an intent about images to its request: it says all there is to say. */
import { type EffectRequest, misplaced, type NoneOf, perform } from '../deciding/effect-request.ts';
import type { ImageIntents } from '../model/effects/image.ts';
import type { Intent } from '../model/records.ts';

export function imageRequest(intent: Intent): EffectRequest {
  switch (intent.kind) {
    case 'PullImage':
    case 'LoadImages':
    case 'DeleteImageContent':
    case 'WaitUntil':
      return perform(intent);
    default:
      return misplaced(intent satisfies NoneOf<keyof ImageIntents>, 'an image or a call');
  }
}
