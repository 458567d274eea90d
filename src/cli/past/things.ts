/** What is there in a folded state, as things that people name. Pure. */
import { isShown } from '../../domain/model/pod-sandbox-state.ts';
import type { Subject } from '../../domain/model/records.ts';
import type { Container, Image, NodeState, PodSandbox } from '../../domain/model/state.ts';
import { type ContainerThing, type ImageThing, type PodThing, type Thing, usedImages } from '../things.ts';

export const podThing = ({ id, config }: PodSandbox): PodThing => ({
  kind: 'pod',
  id,
  name: config.metadata?.name ?? '',
  namespace: config.metadata?.namespace ?? '',
  labels: config.labels ?? {},
});

export const containerThing = (state: Readonly<NodeState>, container: Container): ContainerThing => {
  const pod = state.sandboxes.get(container.podSandboxId);
  return {
    kind: 'container',
    id: container.id,
    name: container.config.metadata?.name ?? '',
    labels: container.config.labels ?? {},
    pod: pod === undefined ? null : podThing(pod),
    images: usedImages({ ...container, image: container.config.image }, (imageId) => {
      const content = state.images.get(imageId)?.content;
      return content === undefined ? [] : [...content.repoTags, ...content.repoDigests];
    }),
  };
};

export const imageThing = ({ id, content }: Image): ImageThing => ({
  kind: 'image',
  id,
  repoTags: content.repoTags,
  repoDigests: content.repoDigests,
});

/** All that is there, whether or not CRI shows it yet. */
export const thingsOf = (state: Readonly<NodeState>): Thing[] => [
  ...[...state.sandboxes.values()].map(podThing),
  ...[...state.containers.values()].map((container) => containerThing(state, container)),
  ...[...state.images.values()].filter(({ removing }) => !removing).map(imageThing),
];

/** What a stream is about, whether or not it is shown; null: it is not there, or no such thing. */
export const thingIn = (state: Readonly<NodeState>, { kind, id }: Subject): Thing | null => {
  const [pod, container, image] = [state.sandboxes.get(id), state.containers.get(id), state.images.get(id)];
  if (kind === 'sandbox') return pod === undefined ? null : podThing(pod);
  if (kind === 'container') return container === undefined ? null : containerThing(state, container);
  return kind !== 'image' || image === undefined ? null : imageThing(image);
};

/** The pod, container or image that a stream is about; undefined: it is not there. */
export const objectIn = ({ sandboxes, containers, images }: Readonly<NodeState>, { kind, id }: Subject): unknown => {
  if (kind === 'sandbox') return sandboxes.get(id);
  return kind === 'container' ? containers.get(id) : images.get(id);
};

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;

/** undefined: it has no such field. */
export const fieldAt = (object: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), object);

/** As CRI names the state of a pod; null while CRI does not show it. */
export const podStateOf = (pod: PodSandbox): string | null =>
  isShown(pod) ? (pod.phase === 'ready' ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY') : null;
