/**
 * Which objects a history is about: pods and containers by id, name, namespace or label, images by id or reference.
 * Learns who bears them from the records that tell of their making, so it has to hear of those before what it is asked about.
 */
import type { PodSandboxConfig } from '../../domain/model/cri.ts';
import {
  type CallRequest,
  containerStream,
  imageStream,
  type RecordType,
  sandboxStream,
} from '../../domain/model/records.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { type Entry, knownAs } from './entries.ts';
import {
  choosesPods,
  hasLabels,
  isContainerNamed,
  isIdPrefix,
  isImageNamed,
  isPodNamed,
  isWholeId,
  type Labels,
  type ThingFilter,
  type UsedImages,
  usedImages,
  usesImage,
} from '../things.ts';
import { containerNameOf, type ContainerName, containersToRestore, imagesToUse, podNameOf } from './names.ts';

/** What options choose. */
export type Wanted = { readonly [K in keyof ThingFilter]?: ThingFilter[K] | undefined };

export interface Selection {
  /** Hears of a record: those say something that tell of an object's making, or ask for it. */
  readonly learn: (record: JournalRecord) => void;
  /** Types of the records that have to be learnt from before the range; none when everything is selected. */
  readonly learnsFrom: readonly RecordType[];
  /** Whether the entry is about a selected object; everything is when nothing is wanted. */
  readonly has: (entry: Entry) => boolean;
  /** Whether a request names a chosen image, whatever came of it. */
  readonly namesImage: (request: CallRequest | undefined) => boolean;
  /** Streams of what was chosen so far, and of more whose calls may be about it; null when everything is. */
  readonly streams: () => readonly string[] | null;
  /** Pods in which things are chosen, and images; those that were learnt so far. */
  readonly pods: () => readonly string[];
  readonly images: () => readonly string[];
  readonly wanted: Wanted;
  /** Nothing has matched so far. */
  readonly isEmpty: () => boolean;
}

const MAKINGS: readonly RecordType[] = ['sandbox.requested', 'container.requested', 'image.pulled'];

/** What a request calls the images that it names. */
const imagesIn = (request: CallRequest): readonly string[] =>
  request.method === 'RemoveImage' ? [request.image] : imagesToUse(request);

const NO_LABELS: Labels = {};

export const createSelection = (wanted: Wanted): Selection => {
  const { pod = null, container = null, image = null, namespace = null, labels = [] } = wanted;
  const ofPods = choosesPods({ pod, container, namespace, labels });
  const isEverything = !ofPods && image === null;
  /** Pods in which containers are chosen, with their labels, which their containers have too. */
  const pods = new Map<string, Labels>();
  /** Streams of other containers of pods that are selected: making one is about its pod too. */
  const inPods = new Set<string>();
  const streams = new Set<string>();
  const ids = new Set<string>();
  const imageIds = new Set<string>();

  const select = (stream: string, id: string): void => {
    streams.add(stream);
    ids.add(id);
  };
  const selectPod = (id: string, its: Labels): void => {
    pods.set(id, labels.length === 0 ? NO_LABELS : its);
    if (container === null && hasLabels(its, labels)) select(sandboxStream(id), id);
  };
  // A whole id needs no record: what it names may be pruned. Its namespace and labels are then not known.
  if (namespace === null && labels.length === 0) {
    if (pod !== null && isWholeId(pod)) selectPod(pod, NO_LABELS);
    if (pod === null && container !== null && isWholeId(container)) select(containerStream(container), container);
  }

  const learnPod = (id: string, { metadata = {}, labels: its = NO_LABELS }: PodSandboxConfig): void => {
    if (!ofPods) return;
    const name = podNameOf(metadata);
    const isIt = pod === null || isPodNamed(pod, { id, ...name });
    if (isIt && (namespace === null || namespace === name.namespace)) selectPod(id, its);
  };
  const learnContainer = (id: string, { name, podSandboxId }: ContainerName, its: Labels = NO_LABELS): void => {
    if (!ofPods) return;
    // Whoever names no pod means those too whose pod is pruned.
    const inPod = (pod === null && namespace === null) || pods.has(podSandboxId);
    const isIt = container === null || isContainerNamed(container, { id, name });
    if (inPod && isIt && hasLabels({ ...pods.get(podSandboxId), ...its }, labels)) select(containerStream(id), id);
    else if (streams.has(sandboxStream(podSandboxId))) inPods.add(containerStream(id));
  };
  const learnImage = (id: string, repoTags: readonly string[], repoDigests: readonly string[]): void => {
    if (image === null) return;
    if (!isImageNamed(image, { id, repoTags, repoDigests })) return;
    select(imageStream(id), id);
    imageIds.add(id);
  };

  /** By its id, too: of another name, or a digest, only the image's own records say which image that is. */
  const isFromImage = (used: UsedImages): boolean =>
    image !== null && (usesImage(image, used) || used.ids.some((one) => imageIds.has(one)));

  const learnCall = (request: CallRequest): void => {
    if (request.method === 'RunPodSandbox' || request.method === 'RestorePod') learnPod(request.newId, request.config);
    if (request.method === 'RestorePod')
      for (const [id, name, { labels: its }] of containersToRestore(request)) learnContainer(id, name, its);
    if (request.method === 'CreateContainer')
      learnContainer(request.newId, containerNameOf(request), request.config.labels);
  };

  const learn = (record: JournalRecord): void => {
    if (isEverything) return;
    const id = record.stream.slice(record.stream.indexOf('/') + 1);
    const call = knownAs('call.received', record);
    if (call !== null) return learnCall(call.event.body.request);
    const requested = knownAs('sandbox.requested', record);
    if (requested !== null) return learnPod(id, requested.event.body.config);
    const created = knownAs('container.requested', record);
    if (created !== null) {
      const { config } = created.event.body;
      if (isFromImage(usedImages({ ...created.event.body, image: config.image }))) select(record.stream, id);
      return learnContainer(id, containerNameOf(created.event.body), config.labels);
    }
    const pulled = knownAs('image.pulled', record);
    if (pulled !== null) learnImage(id, pulled.event.body.image.repoTags, pulled.event.body.image.repoDigests);
  };

  /** Calls that failed may name an image that never came. */
  const namesImage = (request: CallRequest | undefined): boolean => {
    const named = request === undefined ? [] : imagesIn(request);
    return image !== null && usesImage(image, { ids: named, references: named });
  };

  const has = (entry: Entry): boolean => {
    if (isEverything) return true;
    switch (entry.kind) {
      case 'call':
        return (
          [...entry.streams].some((stream) => streams.has(stream)) || namesImage(entry.received?.event.body.request)
        );
      case 'event':
        return streams.has(entry.record.stream);
      case 'read': {
        const { subject } = entry.row;
        return ids.has(subject) || (isIdPrefix(subject) && [...ids].some((id) => id.startsWith(subject)));
      }
      case 'pruned':
        return false;
    }
  };

  const learnsFrom = isEverything ? [] : MAKINGS;
  const chosenStreams = (): readonly string[] | null => (isEverything ? null : [...streams, ...inPods]);
  return {
    learn,
    learnsFrom,
    has,
    namesImage,
    wanted,
    streams: chosenStreams,
    pods: () => [...pods.keys()],
    images: () => [...imageIds],
    isEmpty: () => !isEverything && ids.size === 0,
  };
};
