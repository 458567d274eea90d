/** From an intent about images to its request: it says all there is to say. */
import { bug, type EffectRequest, misplaced, type NoneOf, perform } from '../deciding/effect-request.ts';
import type { ImageIntents } from '../model/effects/image.ts';
import type { Intent } from '../model/records.ts';
import type { NodeState } from '../model/state.ts';

export function imageRequest(intent: Intent): EffectRequest {
  switch (intent.kind) {
    case 'PullImage':
    case 'LoadImages':
    case 'DeleteImageContent':
    case 'WaitUntil':
      return perform(intent);
    case 'SyncImage':
      return misplaced(intent, 'a call');
    default:
      return misplaced(intent satisfies NoneOf<keyof ImageIntents>, 'an image or a call');
  }
}

export function syncImageRequest({ images }: NodeState, imageId: string): EffectRequest {
  const image = images.get(imageId);
  if (image === undefined) return bug('SyncImage was requested for an image that is gone');
  const { layers, blobs } = image.content;
  return perform({ kind: 'SyncImage', layers, blobs });
}
