/**
 * GetContainerEvents: what durable records tell clients. The newest events are kept in one bounded log, and every
 * subscriber walks along it at its own pace, so a stalled one loses its oldest events (counted) and holds up nobody.
 * A new one begins after what was last delivered to anybody, at most five minutes back, over restarts too.
 */
import type { CriEvent, CriEventsOf, ReadModel } from '../../engine/ports.ts';
import { type Sequenced, subjectOf } from '../../domain/records.ts';
import type { Container, PodSandbox } from '../../domain/state.ts';
import * as wire from '../wire/cri/api.ts';
import { containersIn, containerStatuses, podSandboxStatus } from './messages/entries.ts';
import { isUnsure } from './exits.ts';

const EVENTS_MAX = 1000;
const KEPT_NS = 300_000_000_000n;

export interface ContainerEvents {
  /** Sends events until the signal is aborted. */
  readonly subscribe: (
    send: (event: wire.ContainerEventResponse) => Promise<void>,
    signal: AbortSignal,
  ) => Promise<void>;
  /** Events that subscribers would have been told, had they been faster or come earlier. */
  readonly passedOver: () => number;
}

export interface ContainerEventsOptions {
  readonly view: ReadModel;
  readonly eventsOf: CriEventsOf;
  readonly nowNs: () => bigint;
  /** Records of the last minutes up to the moment this is created, in order. */
  readonly backlog: Promise<readonly Sequenced[]>;
  /** The seq up to which events were delivered, by an earlier life too. */
  readonly cursor: EventCursor;
}

export interface EventCursor {
  readonly deliveredSeq: () => number;
  readonly deliver: (seq: number) => void;
}

/** An event with its pod as it was at that moment. */
interface Told {
  readonly event: CriEvent;
  readonly sandbox: PodSandbox | undefined;
  readonly containers: readonly Container[];
}

/** The last EVENTS_MAX events; positions count from the first one ever. */
interface EventLog {
  readonly push: (told: Told) => void;
  readonly at: (position: number) => Told | undefined;
  /** Position of the oldest event that is no older than it may be. */
  readonly first: () => number;
  readonly end: () => number;
}

function createEventLog(nowNs: () => bigint): EventLog {
  let events: Told[] = [];
  let dropped = 0;
  const dropOld = (): void => {
    const since = nowNs() - KEPT_NS;
    const young = events.findIndex(({ event }) => event.atNs >= since);
    const count = Math.max(young < 0 ? events.length : young, events.length - EVENTS_MAX);
    if (count === 0) return;
    events = events.slice(count);
    dropped += count;
  };
  return {
    push(told) {
      events.push(told);
      // Not at every event: dropping copies what stays.
      if (events.length >= 2 * EVENTS_MAX) dropOld();
    },
    at: (position) => events[position - dropped],
    first() {
      dropOld();
      return dropped;
    },
    end: () => dropped + events.length,
  };
}

export function createContainerEvents(options: ContainerEventsOptions): ContainerEvents {
  const { view, eventsOf, cursor } = options;
  const { state } = view;
  const log = createEventLog(options.nowNs);
  const wakes = new Set<() => void>();
  /** Objects as they were last: their last event is told when they are gone. */
  const sandboxes = new Map(state.sandboxes);
  const containers = new Map(state.containers);
  /** Events of pods with a container whose exit code is not known since the restart: a code is told once (C18). */
  let held: CriEvent[] = [];
  /** Where a new subscriber begins. */
  let undelivered = 0;
  let passedOver = 0;

  const podSandboxIdOf = ({ containerId }: CriEvent): string =>
    containers.get(containerId)?.podSandboxId ?? containerId;

  function note({ stream }: Sequenced): void {
    const { id } = subjectOf(stream);
    const sandbox = state.sandboxes.get(id);
    if (sandbox !== undefined) sandboxes.set(id, sandbox);
    const container = state.containers.get(id);
    if (container !== undefined) containers.set(id, container);
  }

  function tell(event: CriEvent): void {
    const podSandboxId = podSandboxIdOf(event);
    // One whose creation was undone was never there for anybody.
    const isHidden = containers.get(event.containerId)?.created === false;
    if (!isHidden)
      log.push({ event, sandbox: sandboxes.get(podSandboxId), containers: containersIn(state, podSandboxId) });
    if (event.type !== 'CONTAINER_DELETED_EVENT') return;
    sandboxes.delete(event.containerId);
    containers.delete(event.containerId);
  }

  function hear(records: readonly Sequenced[]): void {
    const events = [...held, ...records.flatMap((record) => [...eventsOf(record)])];
    if (events.length === 0) return;
    held = [];
    for (const event of events) {
      const mustWait = containersIn(state, podSandboxIdOf(event)).some(isUnsure);
      if (mustWait && held.length < EVENTS_MAX) held.push(event);
      else tell(event);
    }
    for (const wake of wakes) wake();
  }

  // What comes meanwhile is kept for after the backlog, so that events stay in order.
  let waiting: Sequenced[] | null = [];
  view.onChange((records) => {
    for (const record of records) note(record);
    if (waiting === null) hear(records);
    else waiting.push(...records);
  });
  const ready = options.backlog.then((records) => {
    const live = waiting ?? [];
    waiting = null;
    hear(records.filter(({ seq }) => seq > cursor.deliveredSeq()));
    hear(live);
  });

  /** Up to which record all is delivered, when the event before `position` is: some records tell two, and some have to wait. */
  function wholeUpTo(seq: number, position: number): number {
    const whole = log.at(position)?.event.seq === seq ? seq - 1 : seq;
    const [waits] = held;
    return waits === undefined ? whole : Math.min(whole, waits.seq - 1);
  }

  async function subscribe(
    send: (event: wire.ContainerEventResponse) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    await ready;
    let wake: () => void = () => undefined;
    const wakeUp = (): void => wake();
    wakes.add(wakeUp);
    signal.addEventListener('abort', wakeUp, { once: true });
    const isAborted = (): boolean => signal.aborted;
    let position = undelivered;
    try {
      while (!isAborted()) {
        const first = log.first();
        passedOver += Math.max(0, first - position);
        position = Math.max(first, position);
        const told = log.at(position);
        if (told === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        await send(messageOf(told));
        // It may have been dropped on the way.
        if (isAborted()) return;
        position += 1;
        undelivered = Math.max(undelivered, position);
        cursor.deliver(wholeUpTo(told.event.seq, position));
      }
    } finally {
      wakes.delete(wakeUp);
    }
  }

  const messageOf = ({ event, sandbox, containers: ofPod }: Told): wire.ContainerEventResponse => ({
    containerId: event.containerId,
    containerEventType: wire.ContainerEventType[event.type],
    createdAt: String(event.atNs),
    podSandboxStatus: sandbox === undefined ? undefined : podSandboxStatus(sandbox),
    containersStatuses: containerStatuses(state, ofPod),
  });

  return { subscribe, passedOver: () => passedOver };
}
