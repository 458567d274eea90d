/**
 * Which images are kept whatever a garbage collection of the client's thinks of them. It is advice for the client only:
 * an explicit RemoveImage of a pinned image removes it. Pure.
 */
import type { Image } from '../model/state.ts';
import { findImage } from './names.ts';

const WILDCARD = '*';

const isNamedBy = (image: Image, pattern: string): boolean => {
  if (!pattern.endsWith(WILDCARD)) return findImage({ images: new Map([[image.id, image]]) }, pattern) !== undefined;
  const prefix = pattern.slice(0, -WILDCARD.length);
  const { repoTags, repoDigests } = image.content;
  return [...repoTags, ...repoDigests].some((name) => name.startsWith(prefix));
};

/**
 * Tells pinned images by the names they go by: tags, digests and ids as RemoveImage takes them, or the start of a whole
 * name and "*". A name that moves on to another image pins that one.
 */
export const pinnedBy =
  (patterns: readonly string[]): ((image: Image) => boolean) =>
  (image) =>
    patterns.some((pattern) => isNamedBy(image, pattern));
