/** The image that a checkpoint was made with: what goes on from it needs that one. */
import type { Failure } from '../model/errors.ts';
import { shown } from '../oci/refuse.ts';
import type { DescribedImage } from '../model/pod-restore.ts';
import type { NodeState } from '../model/state.ts';
import { findImage } from './names.ts';

/** For messages. */
export const recordedName = ({ imageName, imageId }: DescribedImage): string =>
  `${shown(imageName)} (${shown(imageId)})`;

/** Why it is not on the node; null when it is. `whose` begins the sentence. */
export const recordedImageFailure = (
  state: Pick<NodeState, 'images'>,
  whose: string,
  image: DescribedImage,
): Failure | null =>
  findImage(state, image.imageId) === undefined
    ? {
        reason: 'ImageNotFound',
        message: `${whose} was checkpointed with image ${recordedName(image)}, which is not on this node; pull it first.`,
      }
    : null;
