/**
 * CRI messages of what is in the read model: list entries, statuses, images. Plain functions of one object (and its
 * pod or image); nothing is remembered here.
 */
import {
  containerStateOf,
  containerExitOf,
  resourcesOf,
  startedAtNsOf,
} from '../../../domain/model/container-state.ts';
import { logPath } from '../../../domain/container/log.ts';
import { parseImageReference, repoTagOf } from '../../../domain/image/reference.ts';
import { criSignalOf, stopSignalOf } from '../../../domain/oci/signals.ts';
import type { Container, Image, NodeState, PodSandbox } from '../../../domain/model/state.ts';
import { idOf } from '../../../domain/values/user-ids.ts';
import * as wire from '../../../wire/cri/api.ts';
import { int32, int64, uint64 } from './numbers.ts';
import {
  containerMetadata,
  containerUser,
  imageSpec,
  labelsOf,
  linuxContainerResources,
  mount,
  namespaceOption,
  podSandboxMetadata,
  signal,
} from './to-wire.ts';

const UNSET = '0';

export const sandboxState = (sandbox: PodSandbox): wire.PodSandboxState =>
  sandbox.phase === 'ready' ? wire.PodSandboxState.SANDBOX_READY : wire.PodSandboxState.SANDBOX_NOTREADY;

export const podSandboxEntry = (sandbox: PodSandbox): wire.PodSandbox => ({
  id: sandbox.id,
  metadata: podSandboxMetadata(sandbox.config.metadata ?? {}),
  state: sandboxState(sandbox),
  createdAt: int64(sandbox.createdAtNs),
  labels: labelsOf(sandbox.config.labels),
  annotations: labelsOf(sandbox.config.annotations),
  runtimeHandler: sandbox.runtimeHandler,
});

export function podSandboxStatus(sandbox: PodSandbox): wire.PodSandboxStatus {
  const [ip = '', ...more] = sandbox.phase === 'ready' ? sandbox.ips : [];
  return {
    id: sandbox.id,
    metadata: podSandboxMetadata(sandbox.config.metadata ?? {}),
    state: sandboxState(sandbox),
    createdAt: int64(sandbox.createdAtNs),
    network: { ip, additionalIps: more.map((address) => ({ ip: address })) },
    linux: { namespaces: { options: namespaceOption(sandbox.config.linux?.securityContext?.namespaceOptions ?? {}) } },
    labels: labelsOf(sandbox.config.labels),
    annotations: labelsOf(sandbox.config.annotations),
    runtimeHandler: sandbox.runtimeHandler,
  };
}

const STATES = {
  CONTAINER_CREATED: wire.ContainerState.CONTAINER_CREATED,
  CONTAINER_RUNNING: wire.ContainerState.CONTAINER_RUNNING,
  CONTAINER_EXITED: wire.ContainerState.CONTAINER_EXITED,
} as const;

/** null for one that CRI does not show (yet). */
export function containerState(container: Container): wire.ContainerState | null {
  const state = containerStateOf(container);
  return state === null ? null : STATES[state];
}

const imageRefOf = (container: Container, image: Image | undefined): string =>
  image?.content.repoDigests[0] ?? container.imageId;

/** kubelet gives the image's id, and beside it what its user wrote. */
const askedImage = ({ image, userSpecifiedImage }: wire.ImageSpec): string => userSpecifiedImage || image;

/** Of the image's names the one that was asked for, where it has that. */
function imageNameOf(spec: wire.ImageSpec, image: Image | undefined): string {
  const { repoTags = [], repoDigests = [] } = image?.content ?? {};
  const asked = parseImageReference(askedImage(spec));
  const name = asked.ok ? repoTagOf(asked.value) : null;
  return repoTags.find((tag) => tag === name) ?? repoTags[0] ?? repoDigests[0] ?? spec.image;
}

export function containerEntry(container: Container, state: wire.ContainerState): wire.Container {
  return {
    id: container.id,
    podSandboxId: container.podSandboxId,
    metadata: containerMetadata(container.config.metadata ?? {}),
    image: {
      ...imageSpec(container.config.image ?? {}),
      userSpecifiedImage: container.config.image?.userSpecifiedImage ?? '',
    },
    imageRef: container.imageId,
    state,
    createdAt: int64(container.createdAtNs),
    labels: labelsOf(container.config.labels),
    annotations: labelsOf(container.config.annotations),
    imageId: container.imageId,
  };
}

export function containerStatus(
  nodeState: Readonly<NodeState>,
  container: Container,
  state: wire.ContainerState,
): wire.ContainerStatus {
  const { config } = container;
  const exit = containerExitOf(container);
  const resources = resourcesOf(container);
  const image = nodeState.images.get(container.imageId);
  const sandbox = nodeState.sandboxes.get(container.podSandboxId);
  const spec = imageSpec(config.image ?? {});
  return {
    id: container.id,
    metadata: containerMetadata(config.metadata ?? {}),
    state,
    createdAt: int64(container.createdAtNs),
    startedAt: int64(startedAtNsOf(container) ?? UNSET),
    finishedAt: int64(exit?.finishedAtNs ?? UNSET),
    exitCode: int32(exit?.exitStatus ?? 0),
    image: {
      ...spec,
      image: imageNameOf(spec, image),
      userSpecifiedImage: askedImage(spec),
    },
    imageRef: imageRefOf(container, image),
    reason: exit?.reason ?? '',
    message: exit?.message ?? '',
    labels: labelsOf(config.labels),
    annotations: labelsOf(config.annotations),
    mounts: mountsOf(container),
    logPath: sandbox === undefined ? '' : (logPath(sandbox, container) ?? ''),
    resources: resources === undefined ? undefined : { linux: linuxContainerResources(resources), windows: undefined },
    imageId: container.imageId,
    user: container.facts === null ? undefined : containerUser(container.facts.user),
    stopSignal: signal(criSignalOf(stopSignalOf(config, container.imageConfig))),
  };
}

/** Of an image, which one it is: its name may be another's by now. */
const mountsOf = ({ config, mountedImages = [] }: Container): wire.Mount[] =>
  (config.mounts ?? []).map((one) => {
    const shown = mount(one);
    const mounted = mountedImages.find(({ image }) => image === one.image?.image);
    if (shown.image === undefined || mounted === undefined) return shown;
    return { ...shown, image: { ...shown.image, imageRef: mounted.imageId } };
  });

export function containersIn(nodeState: Readonly<NodeState>, podSandboxId: string): Container[] {
  const found: Container[] = [];
  for (const container of nodeState.containers.values()) {
    if (container.podSandboxId === podSandboxId) found.push(container);
  }
  return found;
}

/**
 * Statuses of those that CRI shows, as events and PodSandboxStatus carry them: the newest first. Where kubelet has
 * evented PLEG, it takes the first of a name in PodSandboxStatus for the container that counts; behind an older one, which has
 * ended, it would never see what it has started in its place.
 */
export function containerStatuses(
  nodeState: Readonly<NodeState>,
  containers: readonly Container[],
): wire.ContainerStatus[] {
  return containers.toReversed().flatMap((container) => {
    const state = containerState(container);
    return state === null ? [] : [containerStatus(nodeState, container, state)];
  });
}

export function imageEntry({ content }: Image, pinned: boolean): wire.Image {
  const user = (content.config.user ?? '').split(':')[0] ?? '';
  const uid = idOf(user);
  return {
    id: content.id,
    repoTags: [...content.repoTags],
    repoDigests: [...content.repoDigests],
    size: uint64(String(content.sizeBytes)),
    uid: uid === null ? undefined : { value: String(uid) },
    username: uid === null ? user : '',
    spec: undefined,
    pinned,
  };
}
