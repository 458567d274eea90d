/**
 * List replies from bytes that are encoded once per change: each object's entry when the object changes, the whole
 * unfiltered reply when any of its kind does. Objects of the read model are never changed in place, so the object
 * itself is the key of what was encoded from it.
 */
import { BinaryWriter } from '@bufbuild/protobuf/wire';
import type { ReadModel } from '../../engine/ports.ts';
import type { Container, Image, PodSandbox } from '../../domain/model/state.ts';
import { isShown } from '../../domain/model/pod-sandbox-state.ts';
import * as wire from '../../wire/cri/api.ts';
import {
  containerEntry,
  containerState,
  containerStatus,
  imageEntry,
  podSandboxEntry,
  sandboxState,
} from './messages/entries.ts';

export interface Lists {
  readonly containers: (filter: wire.ContainerFilter | undefined) => Uint8Array;
  readonly podSandboxes: (filter: wire.PodSandboxFilter | undefined) => Uint8Array;
  readonly images: () => Uint8Array;
  /** The image as CRI shows it. */
  readonly image: (image: Image) => wire.Image;
  /** ContainerStatusResponse without verbose info; null when CRI does not show the container. */
  readonly containerStatus: (container: Container) => Uint8Array | null;
}

/** Every list reply has its entries in field 1, so replies are concatenations of these. */
export const entryBytes = (message: Uint8Array): Uint8Array => {
  const writer = new BinaryWriter();
  writer.uint32(10).bytes(message);
  return writer.finish();
};

/** Told of an object that could not be encoded: a bug, since every value gives a message. */
type OnUnencodable = (id: string, error: unknown) => void;

/** One that can't be encoded is left out of the list, which tells of all the others. */
const orLeftOut =
  <T extends { readonly id: string }>(encode: (item: T) => Uint8Array | null, onUnencodable: OnUnencodable) =>
  (item: T): Uint8Array | null => {
    try {
      return encode(item);
    } catch (error) {
      onUnencodable(item.id, error);
      return null;
    }
  };

/** Encodes each object once for as long as it stays the same. */
function encodedOnce<T extends object>(encode: (item: T) => Uint8Array | null): (item: T) => Uint8Array | null {
  const known = new WeakMap<T, Uint8Array | null>();
  return (item) => {
    const found = known.get(item);
    if (found !== undefined) return found;
    const bytes = encode(item);
    known.set(item, bytes);
    return bytes;
  };
}

/** Builds a reply anew only when the version it was built at has passed. */
function builtOnce(version: () => number, build: () => Uint8Array): () => Uint8Array {
  let at = -1;
  let reply: Uint8Array = new Uint8Array();
  return () => {
    const now = version();
    if (now !== at) {
      reply = build();
      at = now;
    }
    return reply;
  };
}

const join = <T>(items: Iterable<T>, bytesOf: (item: T) => Uint8Array | null): Uint8Array => {
  const parts: Uint8Array[] = [];
  for (const item of items) {
    const bytes = bytesOf(item);
    if (bytes !== null) parts.push(bytes);
  }
  return Buffer.concat(parts);
};

/** `isPinned` must say the same of an image for as long as the daemon runs. */
export function createLists(
  view: ReadModel,
  isPinned: (image: Image) => boolean = () => false,
  onUnencodable: OnUnencodable = () => undefined,
): Lists {
  const { state } = view;
  const entryOf = (image: Image): wire.Image => imageEntry(image, isPinned(image));
  const listed = <T extends { readonly id: string }>(encode: (item: T) => Uint8Array | null) =>
    encodedOnce(orLeftOut(encode, onUnencodable));
  const containerBytes = listed((container: Container) => {
    const shown = containerState(container);
    return shown === null ? null : entryBytes(wire.Container.encode(containerEntry(container, shown)).finish());
  });
  const sandboxBytes = listed((sandbox: PodSandbox) =>
    isShown(sandbox) ? entryBytes(wire.PodSandbox.encode(podSandboxEntry(sandbox)).finish()) : null,
  );
  const imageBytes = listed((image: Image) =>
    image.removing ? null : entryBytes(wire.Image.encode(entryOf(image)).finish()),
  );
  const statusBytes = (container: Container): Uint8Array | null => {
    const shown = containerState(container);
    if (shown === null) return null;
    return wire.ContainerStatusResponse.encode({ status: containerStatus(state, container, shown), info: {} }).finish();
  };

  // A status tells of the image's names too, which change without the container.
  let statusesAtImages = -1;
  let statusOf = encodedOnce(statusBytes);

  const allContainers = builtOnce(
    () => view.versions().containers,
    () => join(state.containers.values(), containerBytes),
  );
  const allSandboxes = builtOnce(
    () => view.versions().sandboxes,
    () => join(state.sandboxes.values(), sandboxBytes),
  );
  const allImages = builtOnce(
    () => view.versions().images,
    () => join(state.images.values(), imageBytes),
  );

  return {
    containers(filter) {
      if (filter === undefined || isEmptyContainerFilter(filter)) return allContainers();
      return join(state.containers.values(), (container) =>
        matchesContainer(container, filter) ? containerBytes(container) : null,
      );
    },
    podSandboxes(filter) {
      if (filter === undefined || isEmptySandboxFilter(filter)) return allSandboxes();
      return join(state.sandboxes.values(), (sandbox) =>
        matchesSandbox(sandbox, filter) ? sandboxBytes(sandbox) : null,
      );
    },
    images: allImages,
    image: entryOf,
    containerStatus(container) {
      const { images } = view.versions();
      if (images !== statusesAtImages) {
        statusesAtImages = images;
        statusOf = encodedOnce(statusBytes);
      }
      return statusOf(container);
    },
  };
}

const hasNoLabels = (labels: Readonly<Record<string, string>>): boolean => Object.keys(labels).length === 0;

const isEmptyContainerFilter = ({ id, state, podSandboxId, labelSelector }: wire.ContainerFilter): boolean =>
  id === '' && state === undefined && podSandboxId === '' && hasNoLabels(labelSelector);

const isEmptySandboxFilter = ({ id, state, labelSelector }: wire.PodSandboxFilter): boolean =>
  id === '' && state === undefined && hasNoLabels(labelSelector);

/** Ids may be prefixes; everything given must match (CRI). */
function matchesContainer(container: Container, filter: wire.ContainerFilter): boolean {
  if (!container.id.startsWith(filter.id) || !container.podSandboxId.startsWith(filter.podSandboxId)) return false;
  if (filter.state !== undefined && containerState(container) !== filter.state.state) return false;
  return matchesLabels(container.config.labels, filter.labelSelector);
}

function matchesSandbox(sandbox: PodSandbox, filter: wire.PodSandboxFilter): boolean {
  if (!sandbox.id.startsWith(filter.id)) return false;
  if (filter.state !== undefined && sandboxState(sandbox) !== filter.state.state) return false;
  return matchesLabels(sandbox.config.labels, filter.labelSelector);
}

export const matchesLabels = (
  labels: Readonly<Record<string, string>> | undefined,
  selector: Readonly<Record<string, string>>,
): boolean => Object.entries(selector).every(([key, value]) => labels?.[key] === value);
