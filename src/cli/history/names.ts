/**
 * What pods, containers and images are called, from the records that tell of their making: so names are known after
 * an object is gone, for as long as those records are there.
 */
import { type ContainerConfig, NamespaceMode, type PodSandboxMetadata } from '../../domain/model/cri.ts';
import {
  type CallRequest,
  containerStream,
  imageStream,
  type RequestOf,
  sandboxStream,
  subjectOf,
} from '../../domain/model/records.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { unlessDamaged } from '../damage.ts';
import { shortId } from '../format.ts';
import { imagesAskedFor } from '../things.ts';
import { knownAs } from './entries.ts';

export interface PodName {
  readonly name: string;
  readonly namespace: string;
  /** Kubernetes' own id of it; '' where none was given. */
  readonly uid: string;
  readonly attempt: number;
}

export interface ContainerName {
  readonly name: string;
  readonly attempt: number;
  readonly podSandboxId: string;
  /** Of the image that it was made from; '' where only its request is known. */
  readonly imageId: string;
  /** Whose PID namespace it was to have: POD unless its request said something else. */
  readonly pidMode: NamespaceMode;
}

/** null: its making is pruned, or never was. */
export interface Names {
  readonly pod: (id: string) => PodName | null;
  readonly container: (id: string) => ContainerName | null;
  /** A tag, or a digest of its repository. */
  readonly image: (id: string) => string | null;
}

/** Where names come from: all that a reader has to offer. */
export type NameSource = Pick<JournalReader, 'firstSeqOfStream' | 'page'>;

const REMEMBERED_MAX = 50_000;

export const podNameOf = ({ name = '', namespace = '', uid = '', attempt = 0 }: PodSandboxMetadata): PodName => ({
  name,
  namespace,
  uid,
  attempt,
});

/** The record with this seq, unless it is pruned. */
export const recordOf = (source: Pick<JournalReader, 'page'>, seq: number): JournalRecord | undefined =>
  source.page({}, seq, seq).records[0];

/** When a record was written; of one that is pruned, when the next one was that is not. null: none is left from there on. */
export const timeOfRecord = (source: Pick<JournalReader, 'page'>, seq: number, headSeq: number): bigint | null => {
  const own = recordOf(source, seq);
  if (own !== undefined) return own.atNs;
  for (let cursor = seq + 1; cursor <= headSeq; ) {
    const { records, next } = source.page({}, cursor, headSeq);
    const [first] = records;
    if (first !== undefined) return first.atNs;
    cursor = next;
  }
  return null;
};

/** The first record of a stream, which tells of the making of what it is about; for a name alone nothing fails. */
export const firstOf = (source: NameSource, stream: string): JournalRecord | undefined => {
  const seq = source.firstSeqOfStream(stream);
  return seq === 0 ? undefined : (unlessDamaged(() => recordOf(source, seq)) ?? undefined);
};

export const createNames = (source: NameSource): Names => {
  const remember = <T>(ask: (id: string) => T): ((id: string) => T) => {
    const known = new Map<string, T>();
    return (id) => {
      const found = known.get(id);
      if (found !== undefined) return found;
      if (known.size >= REMEMBERED_MAX) known.clear();
      const answer = ask(id);
      known.set(id, answer);
      return answer;
    };
  };

  return {
    pod: remember((id) => {
      const record = firstOf(source, sandboxStream(id));
      const known = record === undefined ? null : knownAs('sandbox.requested', record);
      return known === null ? null : podNameOf(known.event.body.config.metadata ?? {});
    }),
    container: remember((id) => {
      const record = firstOf(source, containerStream(id));
      const known = record === undefined ? null : knownAs('container.requested', record);
      return known === null ? null : containerNameOf(known.event.body);
    }),
    image: remember((id) => {
      const record = firstOf(source, imageStream(id));
      const known = record === undefined ? null : knownAs('image.pulled', record);
      if (known === null) return null;
      const { repoTags, repoDigests } = known.event.body.image;
      return repoTags[0] ?? repoDigests[0] ?? null;
    }),
  };
};

export const containerNameOf = (of: {
  readonly podSandboxId: string;
  readonly imageId?: string;
  readonly config: ContainerConfig;
}): ContainerName => {
  const { podSandboxId, imageId = '', config } = of;
  const { name = '', attempt = 0 } = config.metadata ?? {};
  const pidMode = config.linux?.securityContext?.namespaceOptions?.pid ?? NamespaceMode.POD;
  return { name, attempt, podSandboxId, imageId, pidMode };
};

/** What a request calls the images that it pulls, or makes containers from. */
export const imagesToUse = (request: CallRequest): readonly string[] => {
  if (request.method === 'PullImage') return [request.image];
  if (request.method === 'RestorePod') return request.containerConfigs.flatMap(({ image }) => imagesAskedFor(image));
  return request.method === 'CreateContainer' ? imagesAskedFor(request.config.image) : [];
};

/** The containers that a pod was to be restored with: id, name and configuration of each. */
export const containersToRestore = ({
  newId,
  newContainerIds,
  containerConfigs,
}: RequestOf<'RestorePod'>): (readonly [id: string, name: ContainerName, config: ContainerConfig])[] =>
  newContainerIds.flatMap((id, index) => {
    const config = containerConfigs[index];
    return config === undefined ? [] : [[id, containerNameOf({ podSandboxId: newId, config }), config] as const];
  });

/** What of it is told in JSON. */
export const containerNameJson = (container: ContainerName | null): Partial<ContainerName> => {
  if (container === null) return {};
  const { pidMode: _, ...told } = container;
  return told;
};

/** Behind a name, where Kubernetes has made it before. */
export const again = (attempt: number): string => (attempt === 0 ? '' : `#${attempt}`);

export const podLabel = ({ namespace, name, attempt }: PodName): string => `${namespace}/${name}${again(attempt)}`;

/** "default/web 3f2a9c8d1b7e0", "default/web nginx 8d1b7e3f2a9c4", "registry.example/app:1 9f86d081884c7". */
export const labelOf = (names: Names, stream: string): string => {
  const { kind, id } = subjectOf(stream);
  const short = shortId(id);
  switch (kind) {
    case 'sandbox': {
      const pod = names.pod(id);
      return pod === null ? `pod ${short}` : `${podLabel(pod)} ${short}`;
    }
    case 'container': {
      const container = names.container(id);
      if (container === null) return `container ${short}`;
      const pod = names.pod(container.podSandboxId);
      const where = pod === null ? '' : `${podLabel(pod)} `;
      return `${where}${container.name}${again(container.attempt)} ${short}`;
    }
    case 'image':
      return `${names.image(id) ?? 'image'} ${short}`;
    case 'call':
      return '';
    case 'node':
      return 'node';
  }
};
