/**
 * A journal as turns, and which of them a shrunken journal keeps: those about chosen things, and those about the node itself. A
 * pod and its containers are one thing here, an image is one; a call belongs to all that it touched. Pure; decides nothing.
 */
import { subjectsOf } from '../../../src/domain/call/catalogue.ts';
import {
  type Event,
  type Input,
  NODE_STREAM,
  type Sequenced,
  sandboxStream,
  subjectOf,
} from '../../../src/domain/model/records.ts';
import { isInput } from '../../../src/domain/turn/redecide.ts';

/** An input, and what was decided on it. */
export interface Turn {
  readonly input: Sequenced<Input>;
  readonly events: readonly Sequenced<Event>[];
}

/** Events whose input is pruned are left out. */
export const turnsOf = (records: Iterable<Sequenced>): Turn[] => {
  const turns: { input: Sequenced<Input>; events: Sequenced<Event>[] }[] = [];
  for (const record of records) {
    const last = turns.at(-1);
    if (isInput(record)) turns.push({ input: record, events: [] });
    else if (last?.input.seq === record.cause) last.events.push(record);
  }
  return turns;
};

/** What turns are about: streams of pods, which stand for their containers, too, and of images. */
export interface Things {
  /** Of the stream of a pod, a container or an image; null: it is the node's or a call's. */
  readonly of: (stream: string) => string | null;
  /** All that a call touched, by its stream. */
  readonly touchedBy: (callStream: string) => ReadonlySet<string>;
  /** What a pod's containers run from and mount, and its own image. */
  readonly imagesOf: (thing: string) => ReadonlySet<string>;
  readonly all: ReadonlySet<string>;
}

export const thingsIn = (turns: readonly Turn[]): Things => {
  const pods = new Map<string, string>();
  const images = new Map<string, Set<string>>();
  const touched = new Map<string, Set<string>>();
  const callStreams = new Map<number, string>();
  const all = new Set<string>();

  const thingOf = (stream: string): string | null => {
    const { kind } = subjectOf(stream);
    if (kind === 'container') return pods.get(stream) ?? stream;
    return kind === 'sandbox' || kind === 'image' ? stream : null;
  };
  const add = (sets: Map<string, Set<string>>, key: string, value: string | null): void => {
    if (value !== null) sets.set(key, (sets.get(key) ?? new Set()).add(value));
  };

  for (const { input, events } of turns) {
    for (const event of events) {
      const { stream, type, body } = event;
      if (type === 'container.requested') {
        const pod = sandboxStream(body.podSandboxId);
        pods.set(stream, pod);
        for (const imageId of [body.imageId, ...(body.mountedImages ?? []).map((mounted) => mounted.imageId)])
          add(images, pod, `image/${imageId}`);
      }
      if (type === 'sandbox.requested' && body.imageId !== null) add(images, stream, `image/${body.imageId}`);
    }
    if (input.type === 'call.received') {
      callStreams.set(input.seq, input.stream);
      for (const stream of subjectsOf(input.body.request)) add(touched, input.stream, thingOf(stream));
    }
    for (const { stream, call } of [input, ...events]) {
      const thing = thingOf(stream);
      if (thing !== null) all.add(thing);
      if (subjectOf(input.stream).kind === 'call') add(touched, input.stream, thing);
      const caller = call === null ? undefined : callStreams.get(call);
      if (caller !== undefined) add(touched, caller, thing);
    }
  }
  const none: ReadonlySet<string> = new Set();
  return {
    of: thingOf,
    touchedBy: (stream) => touched.get(stream) ?? none,
    imagesOf: (thing) => images.get(thing) ?? none,
    all,
  };
};

/** What of the turns is about these things or about the node, in order, to the last one that is about a thing. */
export const shrunkTo = (turns: readonly Turn[], things: Things, kept: ReadonlySet<string>): Turn[] => {
  const isAboutKept = (stream: string): boolean => {
    const thing = things.of(stream);
    if (thing !== null) return kept.has(thing);
    return subjectOf(stream).kind === 'call' && [...things.touchedBy(stream)].some((touched) => kept.has(touched));
  };
  const isKept = (stream: string): boolean => stream === NODE_STREAM || isAboutKept(stream);
  const left = turns.flatMap(({ input, events }) => {
    const keptEvents = events.filter(({ stream }) => isKept(stream));
    const matters = isKept(input.stream) || keptEvents.some(({ stream }) => isAboutKept(stream));
    return matters ? [{ input: withoutOthers(input, isAboutKept), events: keptEvents }] : [];
  });
  const last = left.findLastIndex(({ input, events }) =>
    [input, ...events].some(({ stream }) => stream !== NODE_STREAM),
  );
  return left.slice(0, last + 1);
};

/** A start of the daemon tells of all that it found. */
const withoutOthers = (input: Sequenced<Input>, isKept: (stream: string) => boolean): Sequenced<Input> => {
  if (input.type !== 'daemon.started') return input;
  const { deadTasks, leftAlone } = input.body;
  return {
    ...input,
    body: {
      ...input.body,
      deadTasks: deadTasks.filter((id) => [`sandbox/${id}`, `container/${id}`].some(isKept)),
      ...(leftAlone === undefined ? {} : { leftAlone: leftAlone.filter(({ stream }) => isKept(stream)) }),
    },
  };
};
