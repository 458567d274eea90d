/** Where a call did something, and whether that is among what a filter chooses. Pure. */
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
  return pods.get(podId) ?? { kind: 'pod', id: podId, ...named, labels: asked, present: true };
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
  return { kind: 'container', id: containerId, ...words, pod: podOf(call, things), present: true };
};

/** A call that is about an image is chosen by what it asked for, and by all that the image is called. */
export const isChosen = (
  filter: ThingFilter,
  { image, imageId }: CallRow,
  place: Place,
  { imageNames }: Pick<Things, 'imageNames'>,
): boolean => {
  if (choosesAll(filter)) return true;
  if (place !== null) return isMeant(filter, place);
  if (filter.image === null || image === null) return false;
  const id = imageId ?? image;
  return usesImage(filter.image, { ids: [id], references: [image, ...(imageNames.get(id) ?? [])] });
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
