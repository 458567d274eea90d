/**
 * GetContainerEvents: what durable records tell clients. The newest events are kept in one bounded log, and every
 * subscriber walks along it at its own pace, so a stalled one loses its oldest events (counted) and holds up nobody.
 * A new one begins after what was last delivered to anybody, at most five minutes back, over restarts too.
 */
import { buffer, firstValueFrom, from, fromEvent, map, merge, share, skipUntil, Subject, take } from 'rxjs';
import type { CriEvent, CriEventsOf, ReadModel } from '../../engine/ports.ts';
import { isCreated, isExitPending } from '../../domain/model/container-state.ts';
import { type Sequenced, subjectOf } from '../../domain/model/records.ts';
import type { Container, PodSandbox } from '../../domain/model/state.ts';
import * as wire from '../../wire/cri/api.ts';
import { containersIn, containerStatuses, podSandboxStatus } from './messages/entries.ts';

const EVENTS_MAX = 1000;
/** So many more may be there: dropping copies what stays. */
const EVENTS_OVER_MAX = 250;
const KEPT_NS = 300_000_000_000n;
const KEPT_MS = Number(KEPT_NS / 1_000_000n);
const TELL_EVERY_NS = 60_000_000_000n;

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
  /** Told that subscribers lost so many more events, having read too slowly or come too late; once a minute at most. */
  readonly onPassedOver: (count: number) => void;
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

interface Subscriber {
  /** Position of the event that it is to be told next. */
  next: number;
}

/** The last EVENTS_MAX events; positions count from the first one ever. */
interface EventLog {
  readonly push: (told: Told) => void;
  readonly at: (position: number) => Told | undefined;
  /** Position of the oldest event that is no older than it may be. */
  readonly first: () => number;
  readonly end: () => number;
}

/** `onDrop` is called with the position of the oldest event that is left. */
function createEventLog(nowNs: () => bigint, onDrop: (first: number) => void): EventLog {
  let events: Told[] = [];
  let dropped = 0;
  const dropOld = (): void => {
    const since = nowNs() - KEPT_NS;
    const young = events.findIndex(({ event }) => event.atNs >= since);
    const count = Math.max(young < 0 ? events.length : young, events.length - EVENTS_MAX);
    if (count === 0) return;
    events = events.slice(count);
    dropped += count;
    onDrop(dropped);
  };
  // Events hold pods as they were, with all that is in them: nobody may ask again, and then nothing else would drop them.
  let forgetting: NodeJS.Timeout | null = null;
  const forgetLater = (): void => {
    forgetting ??= setTimeout(() => {
      forgetting = null;
      dropOld();
      if (events.length > 0) forgetLater();
    }, KEPT_MS).unref();
  };
  return {
    push(told) {
      events.push(told);
      forgetLater();
      if (events.length >= EVENTS_MAX + EVENTS_OVER_MAX) dropOld();
    },
    at: (position) => events[position - dropped],
    first() {
      dropOld();
      return dropped;
    },
    end: () => dropped + events.length,
  };
}

/** Counts what subscribers were too late for, and tells of it now and then. */
function createPassedOver(options: Pick<ContainerEventsOptions, 'nowNs' | 'onPassedOver'>) {
  let passedOver = 0;
  /** How many of them were told of, and when. */
  let toldOf = 0;
  let toldAtNs = -TELL_EVERY_NS;

  function passOver(subscriber: Subscriber, first: number): void {
    const count = first - subscriber.next;
    if (count <= 0) return;
    subscriber.next = first;
    passedOver += count;
    const nowNs = options.nowNs();
    if (nowNs - toldAtNs < TELL_EVERY_NS) return;
    options.onPassedOver(passedOver - toldOf);
    [toldOf, toldAtNs] = [passedOver, nowNs];
  }

  return { passOver, passedOver: () => passedOver };
}

export function createContainerEvents(options: ContainerEventsOptions): ContainerEvents {
  const { view, eventsOf, cursor } = options;
  const { state } = view;
  const { passOver, passedOver } = createPassedOver(options);
  const log = createEventLog(options.nowNs, (first) => {
    for (const subscriber of subscribers) passOver(subscriber, first);
  });
  const subscribers = new Set<Subscriber>();
  /** The log has grown. */
  const grown = new Subject<void>();
  /** Objects as they were last: their last event is told when they are gone. */
  const sandboxes = new Map(state.sandboxes);
  const containers = new Map(state.containers);
  /** Events of pods with a container whose exit code is not known since the restart: a code is told once (C18). */
  let held: CriEvent[] = [];
  /** Where a new subscriber begins. */
  let undelivered = 0;

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
    const subject = containers.get(event.containerId);
    // One whose creation was undone was never there for anybody.
    const isHidden = subject !== undefined && !isCreated(subject);
    if (!isHidden)
      log.push({ event, sandbox: sandboxes.get(podSandboxId), containers: containersIn(state, podSandboxId) });
    if (event.type !== 'CONTAINER_DELETED_EVENT') return;
    sandboxes.delete(event.containerId);
    containers.delete(event.containerId);
  }

  function hear(records: readonly Sequenced[]): void {
    const events = [...held];
    for (const record of records) events.push(...eventsOf(record));
    if (events.length === 0) return;
    held = [];
    for (const event of events) {
      const mustWait = containersIn(state, podSandboxIdOf(event)).some(isExitPending);
      if (mustWait && held.length < EVENTS_MAX) held.push(event);
      else tell(event);
    }
    grown.next();
  }

  view.changes.subscribe((records) => records.forEach(note));
  const backlog = from(options.backlog).pipe(
    map((records) => records.filter(({ seq }) => seq > cursor.deliveredSeq())),
    share(),
  );
  // In order: the backlog, what came while it was read, and from then on what comes.
  const meanwhile = view.changes.pipe(
    buffer(backlog),
    take(1),
    map((changes) => changes.flat()),
  );
  merge(backlog, meanwhile, view.changes.pipe(skipUntil(backlog))).subscribe(hear);

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
    await options.backlog;
    const subscriber: Subscriber = { next: undelivered };
    passOver(subscriber, log.first());
    subscribers.add(subscriber);
    const news = merge(grown, fromEvent(signal, 'abort'));
    const isAborted = (): boolean => signal.aborted;
    try {
      while (!isAborted()) {
        // Drops what is too old by now.
        log.first();
        const told = log.at(subscriber.next);
        if (told === undefined) {
          await firstValueFrom(news);
          continue;
        }
        const after = subscriber.next + 1;
        subscriber.next = after;
        await send(messageOf(told));
        // It may have been dropped on the way.
        if (isAborted()) return;
        undelivered = Math.max(undelivered, after);
        cursor.deliver(wholeUpTo(told.event.seq, after));
      }
    } finally {
      subscribers.delete(subscriber);
    }
  }

  const messageOf = ({ event, sandbox, containers: ofPod }: Told): wire.ContainerEventResponse => ({
    containerId: event.containerId,
    containerEventType: wire.ContainerEventType[event.type],
    createdAt: String(event.atNs),
    podSandboxStatus: sandbox === undefined ? undefined : podSandboxStatus(sandbox),
    containersStatuses: containerStatuses(state, ofPod),
  });

  return { subscribe, passedOver };
}
