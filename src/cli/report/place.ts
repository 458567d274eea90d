/** Where a call did something, and whether that is among what a filter chooses. Pure. */
import { subjectOf } from '../../domain/model/records.ts';
import { choosesAll, type ContainerThing, isMeant, type PodThing, type ThingFilter, usesImage } from '../things.ts';
import type { CallRow, Things } from './rows.ts';

/** The pod or container that a call is about; null: neither. */
export type Place = PodThing | ContainerThing | null;

const podOf = (
  { podId, namespace, pod, labels, containerId }: CallRow,
  { pods }: Pick<Things, 'pods'>,
): PodThing | null => {
  if (podId === null) return null;
  const named = { name: pod ?? '', namespace: namespace ?? '' };
  const asked = containerId === null ? labels : {};
  return pods.get(podId) ?? { kind: 'pod', id: podId, ...named, labels: asked };
};

/** Of what is pruned or never came to be: as far as the call itself tells. */
export const placeOf = (call: CallRow, things: Pick<Things, 'pods' | 'containers'>): Place => {
  const { containerId, containerName, image, labels } = call;
  if (containerId === null) return podOf(call, things);
  const known = things.containers.get(containerId);
  if (known !== undefined) return known;
  const words = {
    name: containerName ?? '',
    images: { ids: [], references: image === null ? [] : [image] },
    labels,
  };
  return { kind: 'container', id: containerId, ...words, pod: podOf(call, things) };
};

const isImageChosen = (image: string | null, id: string, { imageNames }: Pick<Things, 'imageNames'>): boolean =>
  image !== null && usesImage(image, { ids: [id], references: imageNames.get(id) ?? [] });

/** Whether what a call had to do with is chosen: the pod that it removed took its containers with it. */
const isStreamChosen = (filter: ThingFilter, stream: string, things: Things): boolean => {
  const { kind, id } = subjectOf(stream);
  if (kind === 'image') return isImageChosen(filter.image, id, things);
  const thing = kind === 'container' ? things.containers.get(id) : kind === 'sandbox' ? things.pods.get(id) : undefined;
  return thing !== undefined && isMeant(filter, thing);
};

/** A call that is about an image is chosen by what it asked for, and by all that the image is called. */
export const isChosen = (
  filter: ThingFilter,
  { method, image, askedImages, askedContainers, imageIds, streams }: CallRow,
  place: Place,
  things: Things,
): boolean => {
  if (choosesAll(filter)) return true;
  if (place !== null && isMeant(filter, place)) return true;
  // Making a container is about its pod, too, whose labels may be others.
  const pod = method === 'CreateContainer' && place?.kind === 'container' ? place.pod : null;
  if (pod !== null && isMeant(filter, pod)) return true;
  const ofPod = place?.kind === 'pod' ? place : null;
  if (askedContainers.some((container) => isMeant(filter, { ...container, pod: ofPod }))) return true;
  if (streams.some((stream) => isStreamChosen(filter, stream, things))) return true;
  const wanted = filter.image;
  if (wanted === null) return false;
  const asked = image === null ? askedImages : [image, ...askedImages];
  if (asked.some((one) => usesImage(wanted, { ids: [one], references: [one] }))) return true;
  return imageIds.some((id) => isImageChosen(wanted, id, things));
};

export interface PlaceNames {
  readonly namespace: string | null;
  readonly pod: string | null;
  readonly container: string | null;
}

/** A name that is pruned is the id. */
export const namesOf = (place: Place): PlaceNames => {
  if (place === null) return { namespace: null, pod: null, container: null };
  if (place.kind === 'container') return { ...namesOf(place.pod), container: place.name || place.id };
  return { namespace: place.namespace || null, pod: place.name || place.id, container: null };
};
