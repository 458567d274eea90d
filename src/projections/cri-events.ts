/**
 * Which durable records a CRI client hears of, in the words of ContainerEventType. A sandbox's events carry its own id
 * as the container id. Pure: what the event says beside this is built from the read model when it is sent.
 */
import { type Sequenced, subjectOf } from '../domain/model/records.ts';

const EVENT_TYPES = {
  // A sandbox is made and started in one call; kubelet's PLEG wants both.
  'sandbox.ready': ['CONTAINER_CREATED_EVENT', 'CONTAINER_STARTED_EVENT'],
  'sandbox.lost': ['CONTAINER_STOPPED_EVENT'],
  'sandbox.stopped': ['CONTAINER_STOPPED_EVENT'],
  'sandbox.removed': ['CONTAINER_DELETED_EVENT'],
  'container.created': ['CONTAINER_CREATED_EVENT'],
  'container.started': ['CONTAINER_STARTED_EVENT'],
  'container.exited': ['CONTAINER_STOPPED_EVENT'],
  'container.removed': ['CONTAINER_DELETED_EVENT'],
} as const;

/** Types of the records that clients hear of. */
export const TOLD_TYPES = Object.keys(EVENT_TYPES);

type Told = keyof typeof EVENT_TYPES;

export interface ToldEvent {
  readonly seq: number;
  readonly type: (typeof EVENT_TYPES)[Told][number];
  readonly containerId: string;
  readonly atNs: bigint;
}

const isTold = (type: string): type is Told => type in EVENT_TYPES;

export function criEventsOf({ type, seq, stream, atNs }: Sequenced): readonly ToldEvent[] {
  if (!isTold(type)) return [];
  return EVENT_TYPES[type].map((eventType) => ({ seq, type: eventType, containerId: subjectOf(stream).id, atNs }));
}
