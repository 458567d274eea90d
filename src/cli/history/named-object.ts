/**
 * What a record is about, by its id and by its names: of a record of a call, what that call is about, also where it was
 * refused and made nothing. Pure; how it is shown is decided by who shows it.
 */
import { madeBy } from '../../domain/call/catalogue.ts';
import { type CallRequest, containerStream, subjectOf, type SubjectKind } from '../../domain/model/records.ts';
import { type Known, streamsOfAnswer } from './entries.ts';
import {
  type ContainerName,
  containerNameJson,
  containerNameOf,
  containersToRestore,
  type Names,
  type PodName,
  podNameOf,
} from './names.ts';

/** An object by its id, and by its names where they are still known. */
export interface NamedObject {
  readonly kind: SubjectKind;
  /** null: of an image that a call named, and the node did not have. */
  readonly id: string | null;
  readonly pod: PodName | null;
  /** Of a container: of its pod. Of a pod: its own. */
  readonly podSandboxId: string | null;
  readonly container: ContainerName | null;
  readonly image: string | null;
}

export const namedObject = (names: Names, stream: string): NamedObject => {
  const { kind, id } = subjectOf(stream);
  const container = kind === 'container' ? names.container(id) : null;
  const podSandboxId = kind === 'sandbox' ? id : (container?.podSandboxId ?? null);
  return {
    kind,
    id,
    container,
    podSandboxId,
    pod: podSandboxId === null ? null : names.pod(podSandboxId),
    image: kind === 'image' ? names.image(id) : null,
  };
};

/** Named as the call asked for it, where nothing was made of that. */
const askedFor = (names: Names, object: NamedObject, request: CallRequest): NamedObject => {
  const isOfPod = request.method === 'RunPodSandbox' || request.method === 'RestorePod';
  if (isOfPod && object.id === request.newId && object.pod === null)
    return { ...object, pod: podNameOf(request.config.metadata ?? {}) };
  if (request.method === 'RestorePod' && object.kind === 'container' && object.container === null) {
    const [, container = null] = containersToRestore(request).find(([id]) => id === object.id) ?? [];
    if (container === null) return object;
    const pod = names.pod(request.newId) ?? podNameOf(request.config.metadata ?? {});
    return { ...object, container, podSandboxId: request.newId, pod };
  }
  if (request.method !== 'CreateContainer' || object.id !== request.newId || object.container !== null) return object;
  const { podSandboxId } = request;
  return { ...object, container: containerNameOf(request), podSandboxId, pod: names.pod(podSandboxId) };
};

const imageAskedFor = (request: CallRequest): NamedObject[] =>
  request.method === 'PullImage' || request.method === 'RemoveImage'
    ? [{ kind: 'image', id: null, container: null, podSandboxId: null, pod: null, image: request.image }]
    : [];

/** Streams of what a call was to make; it made none of that where its answer names what another call had made. */
const neverMade = (request: CallRequest, answered: readonly string[]): readonly string[] => {
  if (!('newId' in request)) return [];
  const made = madeBy(request.method, request.newId);
  if (made === null || answered.length === 0 || answered.includes(made)) return [];
  return [made, ...(request.method === 'RestorePod' ? request.newContainerIds.map(containerStream) : [])];
};

/** Of the streams that a call has to do with, those that it is about, what its answer names before all others. */
export const streamsAbout = (
  request: CallRequest | undefined,
  completed: Known<'call.completed'> | null,
  streams: Iterable<string>,
): string[] => {
  const answered = completed === null ? [] : streamsOfAnswer(completed);
  const never = request === undefined ? [] : neverMade(request, answered);
  return [...new Set([...answered, ...streams])].filter((stream) => !never.includes(stream));
};

/** What a call is about: `streams` of what it names and what it made, and `request` unless that is pruned. */
export const objectsOfCall = (
  names: Names,
  request: CallRequest | undefined,
  streams: Iterable<string>,
): NamedObject[] => {
  const objects = [...streams].map((stream) => namedObject(names, stream));
  if (request === undefined) return objects;
  return objects.length === 0 ? imageAskedFor(request) : objects.map((object) => askedFor(names, object, request));
};

/** As programs read it; null for what has no name of its own: the node, and calls that are about nothing else. */
export const namedObjectJson = ({ kind, id, pod, container, image }: NamedObject): object | null => {
  switch (kind) {
    case 'sandbox':
      return { kind: 'pod', id, ...pod };
    case 'container':
      return { kind, id, ...containerNameJson(container), pod };
    case 'image':
      return { kind, id, name: image };
    case 'call':
    case 'node':
      return null;
  }
};
