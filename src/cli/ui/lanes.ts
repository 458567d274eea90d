/**
 * Which lane a record belongs to: the node's, the images', or that of a pod or container, in the order in which they
 * come. A call is on the lane of the first object that something was recorded of on its behalf. Holds a number for each
 * object and each call under way; reads nothing itself.
 */
import { subjectOf } from '../../domain/model/records.ts';
import type { OutlineRow } from '../../journal/outline.ts';
import type { Lane } from '../../ui/frames.ts';
import { shortId } from '../format.ts';
import { again, containerNameOf, podLabel, podNameOf } from '../history/names.ts';
import { shownText } from './shown-text.ts';

export const NODE_LANE = 0;
const IMAGES_LANE = 1;

/** What the outline has to tell of a record for these: lanes are named by them. */
export const NAME_PATHS = {
  'sandbox.requested': ['$.config.metadata'],
  'container.requested': ['$.podSandboxId', '$.config.metadata'],
} as const;

export interface Lanes {
  /** The lane of a record; null: of a call of which nothing else is known so far. */
  readonly of: (row: OutlineRow) => number | null;
  /** Lanes that came since this was asked last. */
  readonly news: () => readonly Lane[];
}

interface Metadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly attempt?: number;
}

export const createLanes = (): Lanes => {
  const byStream = new Map<string, number>();
  let fresh: Lane[] = [
    { kind: 'node', id: '', label: 'node', parent: null },
    { kind: 'images', id: '', label: 'images', parent: null },
  ];
  let count = fresh.length;

  const add = (stream: string, lane: Lane): number => {
    fresh.push({ ...lane, label: shownText(lane.label) });
    byStream.set(stream, count);
    count += 1;
    return count - 1;
  };

  const podLane = (stream: string, id: string, { values }: OutlineRow): number => {
    const [metadata] = (values ?? []) as [Metadata?];
    const label = metadata == null ? `pod ${shortId(id)}` : podLabel(podNameOf(metadata));
    return add(stream, { kind: 'pod', id, label, parent: null });
  };

  const containerLane = (stream: string, id: string, { values }: OutlineRow): number => {
    const [podSandboxId, metadata] = (values ?? []) as [string?, Metadata?];
    const parent = byStream.get(`sandbox/${podSandboxId}`) ?? null;
    if (metadata == null || podSandboxId === undefined)
      return add(stream, { kind: 'container', id, label: `container ${shortId(id)}`, parent });
    const { name, attempt } = containerNameOf({ podSandboxId, config: { metadata } });
    return add(stream, { kind: 'container', id, label: `${name}${again(attempt)}`, parent });
  };

  const ofStream = (stream: string, row: OutlineRow): number => {
    const known = byStream.get(stream);
    if (known !== undefined) return known;
    const { kind, id } = subjectOf(stream);
    switch (kind) {
      case 'sandbox':
        return podLane(stream, id, row);
      case 'container':
        return containerLane(stream, id, row);
      case 'image':
        return IMAGES_LANE;
      case 'node':
      case 'call':
        return NODE_LANE;
    }
  };

  return {
    of: (row) => (row.stream === null ? null : ofStream(row.stream, row)),
    news: () => {
      const news = fresh;
      fresh = [];
      return news;
    },
  };
};
