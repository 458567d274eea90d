/** Finding an image by whatever a client calls it: id, short id, tag, digest, in that order of certainty. */
import type { Image, NodeState } from '../model/state.ts';
import { parseImageReference, repositoryOf, repoTagOf } from './reference.ts';

const SHORT_ID = /^(?:sha256:)?[0-9a-f]{4,64}$/;
const ID_LENGTH = 64;

/** The image this text names, among those that are whole and not being removed. */
export function findImage(state: Pick<NodeState, 'images'>, text: string): Image | undefined {
  const exact = visible(state.images.get(text));
  if (exact !== undefined) return exact;
  return findByReference(state, text) ?? findByShortId(state, text);
}

const visible = (image: Image | undefined): Image | undefined =>
  image === undefined || image.removing ? undefined : image;

function findByReference(state: Pick<NodeState, 'images'>, text: string): Image | undefined {
  const parsed = parseImageReference(text);
  if (!parsed.ok) return undefined;
  const reference = parsed.value;
  const tag = repoTagOf(reference);
  const byDigest = reference.digest === null ? null : `${repositoryOf(reference)}@${reference.digest}`;
  for (const image of state.images.values()) {
    if (image.removing) continue;
    const { repoTags, repoDigests } = image.content;
    if (tag !== null && repoTags.includes(tag)) return image;
    if (byDigest !== null && repoDigests.includes(byDigest)) return image;
  }
  return undefined;
}

/** A prefix of an id, when only one image has it. */
function findByShortId(state: Pick<NodeState, 'images'>, text: string): Image | undefined {
  if (!SHORT_ID.test(text)) return undefined;
  const prefix = text.startsWith('sha256:') ? text : `sha256:${text}`;
  if (prefix.length === ID_LENGTH + 'sha256:'.length) return visible(state.images.get(prefix));
  const matching = [...state.images.values()].filter((image) => !image.removing && image.id.startsWith(prefix));
  return matching.length === 1 ? matching[0] : undefined;
}
