/** Why an image is there, or is not: who pulled it, or how pulling it failed. Pure. */
import { imageStream, type Sequenced } from '../../domain/model/records.ts';
import { containerStateOf } from '../../domain/model/container-state.ts';
import { bytes, counted, duration } from '../format.ts';
import type { Fact } from './answer.ts';
import type { About } from './story.ts';
import { askedFor, thingWords } from './people.ts';
import { lastOf } from './records.ts';

export interface ImageStory {
  readonly id: string;
  readonly events: readonly Sequenced[];
}

export const imageStory = ({ records }: About, id: string): ImageStory => ({
  id,
  events: records.ofStream(imageStream(id)),
});

export const imageHeadline = ({ records, names, state, nowNs }: About, { id, events }: ImageStory): string => {
  const subject = thingWords(names, imageStream(id));
  const damaged = lastOf(events, 'content.damaged');
  const removing = lastOf(events, 'image.removing');
  const pulled = lastOf(events, 'image.pulled');
  const asked = pulled === null ? null : askedFor(records, pulled);
  if (removing !== null && !state.images.has(id)) {
    const remover = askedFor(records, removing);
    return `${subject} was removed${remover === null ? '' : ` by ${remover.by}`}, ${duration(nowNs - removing.atNs)} ago`;
  }
  if (damaged !== null && damaged.seq > (pulled?.seq ?? 0))
    return `${subject} is damaged: ${damaged.body.kind} ${damaged.body.digest} ${damaged.body.problem}; pull it again`;
  const since = pulled === null ? '' : ` since ${duration(nowNs - pulled.atNs)}`;
  return `${subject} is there${since}${asked === null ? '' : `: ${asked.by} asked for it (${asked.rpc})`}`;
};

export const imageFacts = ({ state }: About, { id }: ImageStory): Fact[] => {
  const image = state.images.get(id);
  if (image === undefined) return [{ name: 'state', text: 'gone' }];
  const users = [...state.containers.values()].filter((container) => container.imageId === id);
  const running = users.filter((container) => containerStateOf(container) === 'CONTAINER_RUNNING').length;
  return [
    { name: 'state', text: image.removing ? 'being removed' : 'present' },
    { name: 'tags', text: image.content.repoTags.join(', ') || '(none)' },
    { name: 'size', text: bytes(image.content.sizeBytes) },
    { name: 'used by', text: `${counted(users.length, 'container')}, ${running} running` },
  ];
};
