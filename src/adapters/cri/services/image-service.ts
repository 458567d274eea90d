/** CRI's ImageService: pulls and removals go through the engine, questions to the read model. */
import { FailureError } from '../../../domain/model/errors.ts';
import { findImage } from '../../../domain/image/names.ts';
import * as wire from '../../../wire/cri/api.ts';
import type { Handlers } from '../context.ts';
import { calling, done, reading } from '../calls.ts';
import type { CriParts } from '../parts.ts';
import { streamedList } from '../streamed-lists.ts';
import { imageInfo, infoWhen } from '../messages/verbose.ts';

export function imageService(parts: CriParts): Handlers<typeof wire.ImageServiceDefinition> {
  const { view, lists } = parts;
  const wantedName = ({ filter }: wire.ListImagesRequest): string => filter?.image?.image ?? '';
  const list = (request: wire.ListImagesRequest): Uint8Array => {
    const name = wantedName(request);
    if (name === '') return lists.images();
    const image = findImage(view.state, name);
    const spec = request.filter?.image;
    const images = image === undefined ? [] : [askedFor(lists.image(image), spec)];
    return wire.ListImagesResponse.encode({ images }).finish();
  };
  return {
    listImages: reading(parts, 'ListImages', wantedName, list),
    streamImages: streamedList(parts, 'StreamImages', wantedName, list),
    imageStatus: reading(
      parts,
      'ImageStatus',
      ({ image }) => image?.image ?? '',
      ({ image, verbose }) => {
        const found = findImage(view.state, named(image, 'image.image'));
        if (found === undefined) return { image: undefined, info: {} };
        const { content } = found;
        const shown = askedFor(lists.image(found), image);
        if (!verbose) return { image: shown, info: {} };
        return parts
          .imageConfigOf(content.id)
          .then((imageConfig) => ({ image: shown, info: infoWhen(verbose, () => imageInfo(content, imageConfig)) }));
      },
    ),
    pullImage: calling(
      parts,
      'PullImage',
      ({ image, auth }) => ({
        image: named(image, 'image.image'),
        credentials: auth === undefined || isEmptyAuth(auth) ? null : parts.keepCredentials(auth),
        ...(image?.runtimeHandler ? { runtimeHandler: image.runtimeHandler } : {}),
      }),
      ({ outcome }) => ({ imageRef: outcome.value.imageRefs?.[0] ?? '' }),
    ),
    removeImage: calling(parts, 'RemoveImage', ({ image }) => ({ image: named(image, 'image.image') }), done),
    imageFsInfo: reading(
      parts,
      'ImageFsInfo',
      () => '',
      () => parts.imageFsInfo(),
    ),
  };
}

/** All handlers have their images in one store: an image is there for the handler that is asked about, and says so. */
const askedFor = (image: wire.Image, spec: wire.ImageSpec | undefined): wire.Image =>
  spec === undefined || spec.runtimeHandler === ''
    ? image
    : { ...image, spec: wire.ImageSpec.fromPartial({ image: image.id, runtimeHandler: spec.runtimeHandler }) };

function named(image: wire.ImageSpec | undefined, field: string): string {
  if (image === undefined || image.image === '')
    throw new FailureError('InvalidField', `${field} is empty; name an image.`);
  return image.image;
}

const isEmptyAuth = (auth: wire.AuthConfig): boolean =>
  auth.username === '' &&
  auth.password === '' &&
  auth.auth === '' &&
  auth.identityToken === '' &&
  auth.registryToken === '';
