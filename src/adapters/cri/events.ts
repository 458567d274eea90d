/**
 * GetContainerEvents: what durable records tell clients. Each subscriber has a bounded queue of its own, so a stalled
 * one loses its oldest events (counted) and holds up nobody; what happened while nobody listened waits five minutes.
 */
import type { CriEvent, CriEventsOf, ReadModel } from '../../engine/ports.ts';
import * as wire from '../wire/cri/api.ts';
import { containerStatusesOf, podSandboxStatus } from './entries.ts';

const QUEUED_EVENTS_MAX = 1000;
const KEPT_NS = 300_000_000_000n;

export interface ContainerEvents {
  /** Sends events until the signal is aborted. */
  readonly subscribe: (
    send: (event: wire.ContainerEventResponse) => Promise<void>,
    signal: AbortSignal,
  ) => Promise<void>;
  /** Events that a full queue or five minutes without a subscriber passed over. */
  readonly passedOver: () => number;
}

interface Subscriber {
  readonly queue: wire.ContainerEventResponse[];
  wake: () => void;
}

export function createContainerEvents(view: ReadModel, eventsOf: CriEventsOf): ContainerEvents {
  const subscribers = new Set<Subscriber>();
  let unheard: { readonly atNs: bigint; readonly message: wire.ContainerEventResponse }[] = [];
  let passedOver = 0;
  /** Pods of containers that are gone when their last event is built. */
  const podOf = new Map<string, string>();

  function messageOf(event: CriEvent): wire.ContainerEventResponse {
    const { state } = view;
    const container = state.containers.get(event.containerId);
    if (container !== undefined) podOf.set(container.id, container.podSandboxId);
    const podSandboxId = container?.podSandboxId ?? podOf.get(event.containerId) ?? event.containerId;
    if (event.type === 'CONTAINER_DELETED_EVENT') podOf.delete(event.containerId);
    const sandbox = state.sandboxes.get(podSandboxId);
    return {
      containerId: event.containerId,
      containerEventType: wire.ContainerEventType[event.type],
      createdAt: String(event.atNs),
      podSandboxStatus: sandbox === undefined ? undefined : podSandboxStatus(sandbox),
      containersStatuses: containerStatusesOf(state, podSandboxId),
    };
  }

  function keep(atNs: bigint, message: wire.ContainerEventResponse): void {
    const kept = unheard.filter((event) => event.atNs >= atNs - KEPT_NS).slice(1 - QUEUED_EVENTS_MAX);
    passedOver += unheard.length - kept.length;
    unheard = [...kept, { atNs, message }];
  }

  view.onChange((records) => {
    for (const record of records) {
      for (const event of eventsOf(record)) {
        const message = messageOf(event);
        if (subscribers.size === 0) keep(event.atNs, message);
        for (const subscriber of subscribers) offer(subscriber, message);
      }
    }
  });

  function offer(subscriber: Subscriber, message: wire.ContainerEventResponse): void {
    subscriber.queue.push(message);
    if (subscriber.queue.length > QUEUED_EVENTS_MAX) {
      subscriber.queue.shift();
      passedOver += 1;
    }
    subscriber.wake();
  }

  async function subscribe(
    send: (event: wire.ContainerEventResponse) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const subscriber: Subscriber = { queue: unheard.map(({ message }) => message), wake: () => {} };
    unheard = [];
    subscribers.add(subscriber);
    signal.addEventListener('abort', () => subscriber.wake(), { once: true });
    try {
      while (!signal.aborted) {
        const next = subscriber.queue.shift();
        if (next !== undefined) await send(next);
        else await new Promise<void>((resolve) => (subscriber.wake = resolve));
      }
    } finally {
      subscribers.delete(subscriber);
    }
  }

  return { subscribe, passedOver: () => passedOver };
}
