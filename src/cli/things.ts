/**
 * How every command calls pods, containers and images: the options that choose them (`--pod`, `--container`, `--image`,
 * `--namespace`, `--label`, `--present`, `--gone`), the operand that names one, and what is meant by either. Data in, data
 * out: where things come from is the caller's.
 */
import { formatImageReference, parseImageReference, repoTagOf } from '../domain/image/reference.ts';
import type { ImageSpec } from '../domain/model/cri.ts';
import { failure, misuse, type Option, type Values } from './command.ts';
import { someOf } from './format.ts';

export type Labels = Readonly<Record<string, string>>;

export interface PodThing {
  readonly kind: 'pod';
  readonly id: string;
  readonly name: string;
  readonly namespace: string;
  readonly labels: Labels;
}

export interface ContainerThing {
  readonly kind: 'container';
  readonly id: string;
  readonly name: string;
  readonly labels: Labels;
  /** null: its making is pruned. */
  readonly pod: PodThing | null;
  readonly images: UsedImages;
}

/** What a container runs from, and which images it mounts. */
export interface UsedImages {
  /** As far as they are known. */
  readonly ids: readonly string[];
  /** How they were asked for, by kubelet as an id and by its name, and what else they are called. */
  readonly references: readonly string[];
}

export interface ImageThing {
  readonly kind: 'image';
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
}

export type Thing = PodThing | ContainerThing | ImageThing;

export const thingOptions = {
  pod: {
    value: 'POD',
    about: 'Only what is about this pod and its containers: its id or the beginning of it, NAME, or NAMESPACE/NAME.',
  },
  container: {
    value: 'CONTAINER',
    about:
      'Only what is about this container: its id or the beginning of it, its name (with --pod, of that pod), POD/NAME, or NAMESPACE/POD/NAME.',
  },
  image: {
    value: 'IMAGE',
    about:
      'Only what is about this image, and about containers that run from it or mount it: a reference, or its id or the beginning of it. Pulls that failed say no id: they are found by the reference that they asked for.',
  },
  namespace: { value: 'NAMESPACE', about: 'Only pods of this namespace and their containers.' },
  label: {
    value: 'LABEL',
    repeatable: true,
    about:
      "Only pods and containers with this label: KEY=VALUE, KEY!=VALUE, KEY (whatever its value) or !KEY (without it). A container has its pod's labels too. Given more than once: with all of them.",
  },
} as const satisfies Readonly<Record<string, Option>>;

export interface LabelTerm {
  readonly key: string;
  /** null: any. */
  readonly value: string | null;
  readonly negated: boolean;
}

/** What the options choose; everything where nothing is given. */
export interface ThingFilter {
  readonly pod: string | null;
  readonly container: string | null;
  readonly image: string | null;
  readonly namespace: string | null;
  readonly labels: readonly LabelTerm[];
}

const TERM = /^(!)?([^=!]+)(?:(!=|==|=)(.*))?$/s;

const termOf = (text: string): LabelTerm => {
  const [, without, key, operator, value] = TERM.exec(text) ?? [];
  if (key === undefined || (without !== undefined && operator !== undefined))
    throw misuse(`--label ${text}: that is no label; KEY=VALUE, KEY!=VALUE, KEY and !KEY are.`);
  return { key, value: value ?? null, negated: without !== undefined || operator === '!=' };
};

/** Whether pods or containers are chosen, not images. */
export const choosesPods = (filter: Pick<ThingFilter, 'pod' | 'container' | 'namespace' | 'labels'>): boolean => {
  const { pod, container, namespace, labels } = filter;
  return [pod, container, namespace].some((word) => word !== null) || labels.length > 0;
};

/** A container may be named together with its pod. */
const containerAndPod = (container: string | null, pod: string | null): Pick<ThingFilter, 'container' | 'pod'> => {
  const slash = container?.lastIndexOf('/') ?? -1;
  if (container === null || slash === -1) return { container, pod };
  if (pod !== null) throw misuse(`--container ${container} names a pod, and so does --pod: give one of them.`);
  return { container: container.slice(slash + 1), pod: container.slice(0, slash) };
};

/** Throws for a label that is none, and for choices that contradict each other. */
export const thingFilterOf = (values: Values<typeof thingOptions>): ThingFilter => {
  const { pod = null, container = null, image = null, namespace = null, label = [] } = values;
  const labels = label.map(termOf);
  if (image !== null && choosesPods({ pod, container, namespace, labels }))
    throw misuse('--image goes with none of --pod, --container, --namespace, --label: an image belongs to no pod.');
  return { ...containerAndPod(container, pod), image, namespace, labels };
};

/** Nothing is chosen, so everything is. */
export const choosesAll = ({ pod, container, image, namespace, labels }: ThingFilter): boolean =>
  [pod, container, image, namespace].every((word) => word === null) && labels.length === 0;

const termText = ({ key, value, negated }: LabelTerm): string =>
  value === null ? `${negated ? '!' : ''}${key}` : `${key}${negated ? '!=' : '='}${value}`;

/** For choices that nothing bears. */
export const nobodyIs = ({ pod, container, image, namespace, labels }: ThingFilter): string => {
  const named = [
    ...(container === null ? [] : [`container ${container}`]),
    ...(pod === null ? [] : [`pod ${pod}`]),
    ...(image === null ? [] : [`image ${image}`]),
  ];
  const places = [...(named.length === 0 ? ['pod'] : named), ...(namespace === null ? [] : [`namespace ${namespace}`])];
  const labelled = labels.length === 0 ? '' : ` with label ${labels.map(termText).join(', ')}`;
  return `The journal knows of no ${places.join(' in ')}${labelled}.`;
};

const HEX_PREFIX = /^[0-9a-f]{4,64}$/;
const WHOLE_ID = /^[0-9a-f]{64}$/;

/** Whether a text can be only the id of something, and of what is pruned too. */
export const isWholeId = (text: string): boolean => WHOLE_ID.test(text);

/** Whether this is an id, or its beginning: at least four hex digits, so that few names are taken for one. */
export const isIdPrefix = (text: string): boolean => HEX_PREFIX.test(text);

const STREAMS_OF = { pod: 'sandbox/', container: 'container/', image: 'image/sha256:' } as const;
const NAMED_MAX = 10;

/** The streams of all whose id begins so, present or gone. Kind null: of any kind. */
export const streamsOfId = (
  { kind, text }: ThingName,
  streamsBeginning: (start: string) => readonly string[],
): readonly string[] => {
  const bare = text.replace(/^sha256:/, '');
  if (!isIdPrefix(bare)) return [];
  const starts = kind === null ? Object.values(STREAMS_OF) : [STREAMS_OF[kind]];
  return starts.flatMap((start) => streamsBeginning(`${start}${bare}`));
};

/** For what could be meant by a word that is too short. */
export const couldBe = (text: string, candidates: readonly string[]): string =>
  `"${text}" could be any of these: ${someOf(candidates, NAMED_MAX)}.`;

/** Whoever gives the beginning of an id means one thing. Throws where several have it. */
export const refuseAmbiguous = (
  { pod, container, image }: Pick<ThingFilter, 'pod' | 'container' | 'image'>,
  streamsBeginning: (start: string) => readonly string[],
): void => {
  for (const [kind, text] of Object.entries({ pod, container, image }) as [Thing['kind'], string | null][]) {
    const streams = text === null ? [] : streamsOfId({ kind, text }, streamsBeginning);
    if (streams.length > 1) throw failure(`--${kind} ${couldBe(text ?? '', streams)} Give more of the id.`);
  }
};

const isIdOf = (text: string, id: string): boolean => isIdPrefix(text) && id.startsWith(text);

const isImageIdOf = (text: string, id: string): boolean =>
  isIdOf(text.replace(/^sha256:/, ''), id.replace(/^sha256:/, ''));

export const isPodNamed = (text: string, { id, name, namespace }: Pick<PodThing, 'id' | 'name' | 'namespace'>) =>
  isIdOf(text, id) || text === name || text === `${namespace}/${name}`;

export const isContainerNamed = (text: string, { id, name }: Pick<ContainerThing, 'id' | 'name'>): boolean =>
  isIdOf(text, id) || text === name;

/** A reference in its whole form; the text itself when it is none. */
const wholeReference = (text: string): string => {
  const parsed = parseImageReference(text);
  return parsed.ok ? formatImageReference(parsed.value) : text;
};

/** How a container's image was asked for. Kubelet asks by id; the name is then what the user has specified. */
export const imagesAskedFor = ({ image = '', userSpecifiedImage = '' }: ImageSpec = {}): readonly string[] =>
  [...new Set([image, userSpecifiedImage])].filter((one) => one !== '');

/** Of a container's making; ids and names that it does not have are ''. */
export interface ImagesOfMaking {
  readonly imageId: string;
  readonly image: ImageSpec | undefined;
  readonly mountedImages?: readonly { readonly image: string; readonly imageId: string }[] | undefined;
}

/** @param namesOf  what the image of an id is called, as far as that is known */
export const usedImages = (
  { imageId, image, mountedImages = [] }: ImagesOfMaking,
  namesOf: (id: string) => readonly string[] = () => [],
): UsedImages => {
  const ids = [imageId, ...mountedImages.map((mounted) => mounted.imageId)].filter((id) => id !== '');
  const mounted = mountedImages.map((one) => one.image);
  return { ids, references: [...imagesAskedFor(image), ...mounted, ...ids.flatMap(namesOf)] };
};

export const NO_IMAGES: UsedImages = { ids: [], references: [] };

/** Whether two references name the same: busybox and docker.io/library/busybox:latest do. */
export const isSameReference = (one: string, other: string): boolean => wholeReference(one) === wholeReference(other);

const tagOf = (text: string): string | null => {
  const parsed = parseImageReference(text);
  return parsed.ok ? repoTagOf(parsed.value) : null;
};

export const isImageNamed = (text: string, image: Pick<ImageThing, 'id' | 'repoTags' | 'repoDigests'>): boolean => {
  const tag = tagOf(text);
  const isTagged = tag !== null && image.repoTags.includes(tag);
  return isTagged || image.repoDigests.includes(wholeReference(text)) || isImageIdOf(text, image.id);
};

/** Whether a container that has these uses an image that is called so. */
export const usesImage = (text: string, { ids, references }: UsedImages): boolean =>
  ids.some((id) => isImageIdOf(text, id)) || references.some((one) => isSameReference(text, one));

const holds = (labels: Labels, { key, value, negated }: LabelTerm): boolean => {
  const has = Object.hasOwn(labels, key) && (value === null || labels[key] === value);
  return has !== negated;
};

export const hasLabels = (labels: Labels, terms: readonly LabelTerm[]): boolean =>
  terms.every((term) => holds(labels, term));

const isPodMeant = (filter: ThingFilter, pod: PodThing): boolean =>
  filter.container === null &&
  filter.image === null &&
  (filter.pod === null || isPodNamed(filter.pod, pod)) &&
  (filter.namespace === null || filter.namespace === pod.namespace) &&
  hasLabels(pod.labels, filter.labels);

const isContainerMeant = (filter: ThingFilter, container: ContainerThing): boolean => {
  const { pod, labels, images } = container;
  // Of a container whose pod is pruned nobody knows the namespace.
  const isInPod = (text: string): boolean => pod !== null && isPodNamed(text, pod);
  return (
    (filter.pod === null || isInPod(filter.pod)) &&
    (filter.namespace === null || filter.namespace === pod?.namespace) &&
    (filter.container === null || isContainerNamed(filter.container, container)) &&
    (filter.image === null || usesImage(filter.image, images)) &&
    hasLabels({ ...pod?.labels, ...labels }, filter.labels)
  );
};

const isImageMeant = (filter: ThingFilter, image: ImageThing): boolean =>
  !choosesPods(filter) && (filter.image === null || isImageNamed(filter.image, image));

/** Whether a filter chooses this thing. */
export const isMeant = (filter: ThingFilter, thing: Thing): boolean => {
  switch (thing.kind) {
    case 'pod':
      return isPodMeant(filter, thing);
    case 'container':
      return isContainerMeant(filter, thing);
    case 'image':
      return isImageMeant(filter, thing);
  }
};

/** What an operand names: one kind of thing, or whatever bears the name. */
export interface ThingName {
  readonly kind: Thing['kind'] | null;
  readonly text: string;
}

/** For the help of whatever takes one. */
export const THING_FORMS =
  'A thing is an id or the beginning of it, a name, NAMESPACE/POD, NAMESPACE/POD/CONTAINER or a reference of an image; pod:, container: or image: in front of it says which kind is meant.';

const NAMED_KIND = /^(pod|container|image):(?=.)(.*)$/s;

export const parseThingName = (text: string): ThingName => {
  const [, kind, rest] = NAMED_KIND.exec(text) ?? [];
  switch (kind) {
    case 'pod':
    case 'container':
    case 'image':
      return { kind, text: rest ?? '' };
    default:
      return { kind: null, text };
  }
};

const isPathOf = (text: string, { name, pod }: ContainerThing): boolean =>
  pod !== null && (text === `${pod.namespace}/${pod.name}/${name}` || text === `${pod.name}/${name}`);

/** Whether an operand names this thing. */
export const isNamed = ({ kind, text }: ThingName, thing: Thing): boolean => {
  if (kind !== null && kind !== thing.kind) return false;
  switch (thing.kind) {
    case 'pod':
      return isPodNamed(text, thing);
    case 'container':
      return isContainerNamed(text, thing) || isPathOf(text, thing);
    case 'image':
      return isImageNamed(text, thing);
  }
};
