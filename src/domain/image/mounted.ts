/**
 * Images as volumes (Mount.image of CRI): which images a container's config mounts, and which containers hold an image
 * back from removal, be it as their root or as a volume.
 */
import type { ContainerConfig, Mount } from '../model/cri.ts';
import { refused, type Result, succeeded } from '../model/result.ts';
import { shown } from '../oci/refuse.ts';
import type { Container, NodeState, PodSandbox } from '../model/state.ts';
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

interface MountedImage {
  readonly image: string;
  readonly imageId: string;
}

/** The images that a config mounts, as they are on this node now: creating a container never pulls. */
function imagesToMount(state: Pick<NodeState, 'images'>, { mounts }: ContainerConfig): Result<readonly MountedImage[]> {
  const images: MountedImage[] = [];
  for (const image of imageNamesIn(mounts)) {
    const found = findImage(state, image);
    if (found === undefined) {
      const message = `${IMAGE_VOLUME_FAILED}: mounts.image ${shown(image)} is not on this node; pull it first.`;
      return refused({ reason: 'ImageNotFound', message });
    }
    images.push({ image, imageId: found.id });
  }
  return succeeded(images);
}

/** What a container stands on, as its record says it. */
interface ContainerImages {
  readonly imageId: string;
  /** Absent: none. */
  readonly mountedImages?: readonly MountedImage[];
}

/** The images of a config, its root's and those of its volumes, or which of them is not there. */
export function imagesOf(state: Pick<NodeState, 'images'>, config: ContainerConfig): Result<ContainerImages> {
  const name = config.image?.image ?? '';
  const image = findImage(state, name);
  if (image === undefined) {
    const message = `image.image "${name}" is not on this node; pull it first.`;
    return refused({ reason: 'ImageNotFound', message });
  }
  const mounted = imagesToMount(state, config);
  if (!mounted.ok) return mounted;
  const mountedImages = mounted.value.length === 0 ? {} : { mountedImages: mounted.value };
  return succeeded({ imageId: image.id, ...mountedImages });
}

/** Ids of all images that a container stands on: its root's, then those of its volumes. */
export const imageIdsOf = ({ imageId, mountedImages = [] }: Container): readonly string[] => [
  imageId,
  ...mountedImages.map((mounted) => mounted.imageId),
];

/** Ids of the images that a pod holds itself: its pause task's, and those of containers that it is yet to be restored with. */
export const imageIdsOfPod = ({ image, restore }: PodSandbox): readonly string[] => [
  ...(image === null ? [] : [image.id]),
  ...(restore === undefined || restore.begun ? [] : restore.containers).flatMap(({ imageId, mountedImages = [] }) => [
    imageId,
    ...mountedImages.map((mounted) => mounted.imageId),
  ]),
];
