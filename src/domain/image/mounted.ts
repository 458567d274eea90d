/**
 * Images as volumes (Mount.image of CRI): which images a container's config mounts, and which containers hold an image
 * back from removal, be it as their root or as a volume.
 */
import type { ContainerConfig, Mount } from '../cri.ts';
import type { Failure } from '../errors.ts';
import { shown } from '../oci/refuse.ts';
import type { Container, NodeState } from '../state.ts';
import { findImage } from './names.ts';

/** Layers of an image, base first; none of one that is not there. */
export const chainIdsOf = ({ images }: Pick<NodeState, 'images'>, imageId: string): readonly string[] =>
  images.get(imageId)?.content.layers.map(({ chainId }) => chainId) ?? [];

/** What kubelet looks for in the message of a CreateContainer that failed for an image volume. */
export const IMAGE_VOLUME_FAILED = 'ImageVolumeMountFailed';

/** Names of the images that are mounted, each once. */
const imageNamesIn = (mounts: readonly Mount[] | undefined): readonly string[] => [
  ...new Set((mounts ?? []).flatMap(({ image }) => (image === undefined ? [] : [image.image ?? '']))),
];

export type ImagesToMount =
  | { readonly ok: true; readonly images: readonly { readonly image: string; readonly imageId: string }[] }
  | { readonly ok: false; readonly failure: Failure };

/** The images that a config mounts, as they are on this node now: creating a container never pulls. */
export function imagesToMount(state: Pick<NodeState, 'images'>, { mounts }: ContainerConfig): ImagesToMount {
  const images: { image: string; imageId: string }[] = [];
  for (const image of imageNamesIn(mounts)) {
    const found = findImage(state, image);
    if (found === undefined) {
      const message = `${IMAGE_VOLUME_FAILED}: mounts.image ${shown(image)} is not on this node; pull it first.`;
      return { ok: false, failure: { reason: 'ImageNotFound', message } };
    }
    images.push({ image, imageId: found.id });
  }
  return { ok: true, images };
}

/** Ids of all images that a container stands on: its root's, then those of its volumes. */
export const imageIdsOf = ({ imageId, mountedImages = [] }: Container): readonly string[] => [
  imageId,
  ...mountedImages.map((mounted) => mounted.imageId),
];
