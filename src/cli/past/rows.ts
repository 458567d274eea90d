/** Pods, containers and images of a folded state as rows of a table, and as JSON. Pure. */
import { containerExitOf, containerStateOf, startedAtNsOf } from '../../domain/model/container-state.ts';
import type { Container, Image, NodeState, PodSandbox } from '../../domain/model/state.ts';
import { bytes, duration, shortId, utcTime } from '../format.ts';
import { podLabel, podNameOf } from '../history/names.ts';
import { isMeant, type ThingFilter } from '../things.ts';
import type { Style } from '../table.ts';
import { containerThing, imageThing, podStateOf, podThing } from './things.ts';

export const KINDS = ['pods', 'containers', 'images'] as const;
export type Kind = (typeof KINDS)[number];

export interface Listed {
  readonly cells: readonly string[];
  readonly style: Style;
  readonly json: Readonly<Record<string, unknown>>;
}

export const COLUMNS: Readonly<Record<Kind, readonly string[]>> = {
  pods: ['POD', 'ID', 'STATE', 'AGE', 'IP', 'HANDLER'],
  containers: ['CONTAINER', 'ID', 'STATE', 'SINCE', 'EXIT', 'POD', 'IMAGE'],
  images: ['IMAGE', 'ID', 'SIZE', 'AGE'],
};

const age = (atNs: bigint, sinceNs: string): string => {
  const ns = atNs - BigInt(sinceNs);
  return duration(ns < 0n ? 0n : ns);
};

const podListed = (pod: PodSandbox, atNs: bigint): Listed => {
  const state = podStateOf(pod);
  const metadata = pod.config.metadata ?? {};
  const ips = pod.phase === 'ready' ? pod.ips : [];
  return {
    cells: [
      podLabel(podNameOf(metadata)),
      shortId(pod.id),
      state ?? 'being made',
      age(atNs, pod.createdAtNs),
      ips.join(', '),
      pod.runtimeHandler,
    ],
    style: state === 'SANDBOX_READY' ? 'plain' : 'doubtful',
    json: {
      kind: 'pod',
      id: pod.id,
      ...podNameOf(metadata),
      uid: metadata.uid ?? '',
      state,
      createdAt: utcTime(BigInt(pod.createdAtNs)),
      ips,
      runtimeHandler: pod.runtimeHandler,
      labels: pod.config.labels ?? {},
    },
  };
};

/** Since when it is what it is. */
const sinceOf = (container: Container): string =>
  containerExitOf(container)?.finishedAtNs ?? startedAtNsOf(container) ?? container.createdAtNs;

const containerListed = (state: Readonly<NodeState>, container: Container, atNs: bigint): Listed => {
  const shown = containerStateOf(container);
  const exit = containerExitOf(container);
  const pod = state.sandboxes.get(container.podSandboxId);
  const { name = '', attempt = 0 } = container.config.metadata ?? {};
  const image = container.config.image?.userSpecifiedImage || container.config.image?.image || container.imageId;
  const podName = pod === undefined ? null : podNameOf(pod.config.metadata ?? {});
  return {
    cells: [
      `${name}${attempt === 0 ? '' : `#${attempt}`}`,
      shortId(container.id),
      shown ?? 'being made',
      age(atNs, sinceOf(container)),
      exit === null ? '' : `${exit.exitStatus} ${exit.reason}`,
      podName === null ? shortId(container.podSandboxId) : podLabel(podName),
      image,
    ],
    style: exit !== null && exit.exitStatus !== 0 ? 'bad' : shown === 'CONTAINER_RUNNING' ? 'plain' : 'doubtful',
    json: {
      kind: 'container',
      id: container.id,
      name,
      attempt,
      state: shown,
      createdAt: utcTime(BigInt(container.createdAtNs)),
      startedAt: startedAtNsOf(container) === null ? null : utcTime(BigInt(startedAtNsOf(container) ?? '0')),
      exit: exit === null ? null : { ...exit, finishedAtNs: undefined, finishedAt: utcTime(BigInt(exit.finishedAtNs)) },
      podSandboxId: container.podSandboxId,
      pod: podName,
      image,
      imageId: container.imageId,
      labels: container.config.labels ?? {},
    },
  };
};

const imageListed = ({ id, content, pulledAtNs }: Image, atNs: bigint): Listed => {
  const { repoTags, repoDigests, sizeBytes } = content;
  return {
    cells: [repoTags.join(', ') || repoDigests[0] || '<none>', shortId(id), bytes(sizeBytes), age(atNs, pulledAtNs)],
    style: 'plain',
    json: { kind: 'image', id, repoTags, repoDigests, sizeBytes, pulledAt: utcTime(BigInt(pulledAtNs)) },
  };
};

/** All of a kind that the filter chooses, as of `atNs`. */
export const listed = (kind: Kind, state: Readonly<NodeState>, filter: ThingFilter, atNs: bigint): Listed[] => {
  switch (kind) {
    case 'pods':
      return [...state.sandboxes.values()]
        .filter((pod) => isMeant(filter, podThing(pod)))
        .map((pod) => podListed(pod, atNs));
    case 'containers':
      return [...state.containers.values()]
        .filter((container) => isMeant(filter, containerThing(state, container)))
        .map((container) => containerListed(state, container, atNs));
    case 'images':
      return [...state.images.values()]
        .filter((image) => !image.removing && isMeant(filter, imageThing(image)))
        .map((image) => imageListed(image, atNs));
  }
};
