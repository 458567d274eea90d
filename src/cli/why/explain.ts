/** From what is meant to the answer: which records belong to its story, and which sentence comes first. */
import { type RecordType, sandboxStream, type Sequenced, subjectOf } from '../../domain/model/records.ts';
import { bare } from '../../domain/values/sentence.ts';
import { bytes, duration } from '../format.ts';
import type { Answer } from './answer.ts';
import { callFacts, callHeadline, callStory } from './call.ts';
import { causeChain, chainOf, sentenceOfAny } from './chain.ts';
import { containerFacts, containerHeadline } from './container.ts';
import { type About, containerStory } from './story.ts';
import { failedCommandCalls } from './container-end.ts';
import { imageFacts, imageHeadline, imageStory } from './image.ts';
import { capital, thingWords } from './people.ts';
import { podFacts, podHeadline, podStory } from './pod.ts';
import type { EventOf } from './records.ts';
import type { Found } from './find.ts';

/** Of a pod, what its containers feel. */
const OF_POD: ReadonlySet<RecordType> = new Set(['shim.lost', 'sandbox.lost', 'sandbox.stopping', 'sandbox.failed']);
const OF_NODE: readonly RecordType[] = ['daemon.started', 'daemon.stopped'];
const DAEMON_RECORDS_MAX = 6;

const inOrder = (events: readonly Sequenced[]): Sequenced[] =>
  [...new Map(events.map((event) => [event.seq, event])).values()].toSorted((a, b) => a.seq - b.seq);

/** Ends and starts of the daemon while it was there. */
const daemonRecords = ({ records }: About, events: readonly Sequenced[]): Sequenced[] => {
  const [first, last] = [events[0], events.at(-1)];
  const found: Sequenced[] = [];
  if (first === undefined || last === undefined) return found;
  for (let before = last.seq + 1; found.length < DAEMON_RECORDS_MAX; ) {
    const event = records.newestOfNode(OF_NODE, before);
    if (event === null || event.seq < first.seq) break;
    found.push(event);
    before = event.seq;
  }
  return found;
};

/** Not what was done for commands in it: they are no part of why it is as it is. */
const withoutExecs = ({ records }: About, events: readonly Sequenced[]): Sequenced[] =>
  events.filter((event) => {
    const method = records.callOf(event)?.body.request.method;
    return method !== 'ExecSync' && method !== 'ExecSession' && method !== 'AttachSession';
  });

const callsWithEnds = ({ records }: About, calls: readonly number[]): Sequenced[] =>
  calls.flatMap((seq) => [records.at(seq), records.endOf(seq)].flatMap((event) => event ?? []));

const ofContainer = (about: About, id: string): Omit<Answer, 'about'> => {
  const story = containerStory(about, id);
  const podId = story.requested?.body.podSandboxId;
  const ofPod = podId === undefined ? [] : about.records.ofStream(sandboxStream(podId));
  const firstSeq = story.events[0]?.seq ?? 0;
  const felt = ofPod.filter(({ type, seq }) => OF_POD.has(type) && seq >= firstSeq);
  const events = [
    ...withoutExecs(about, story.events),
    ...felt,
    ...daemonRecords(about, story.events),
    ...callsWithEnds(about, failedCommandCalls(about, story)),
  ];
  return {
    headline: containerHeadline(about, story),
    facts: containerFacts(about, story),
    chain: chainOf(about.records, inOrder(events), about.nowNs),
  };
};

const ofPod = (about: About, id: string): Omit<Answer, 'about'> => {
  const story = podStory(about, id);
  const events = inOrder([
    ...story.events,
    ...daemonRecords(about, story.events),
    ...callsWithEnds(
      about,
      story.refused.map(({ newest }) => newest.seq),
    ),
  ]);
  return {
    headline: podHeadline(about, story),
    facts: podFacts(about, story),
    chain: chainOf(about.records, events, about.nowNs),
  };
};

const ofImage = (about: About, id: string): Omit<Answer, 'about'> => {
  const story = imageStory(about, id);
  return {
    headline: imageHeadline(about, story),
    facts: imageFacts(about, story),
    chain: chainOf(about.records, story.events, about.nowNs),
  };
};

const CAUSES_MAX = 20;

/** A record and what led to it, as far back as it goes. */
export const causesOf = ({ records }: Pick<About, 'records'>, event: Sequenced): Sequenced[] => {
  const found: Sequenced[] = [event];
  for (let last = event; last.cause !== null && last.cause !== last.seq && found.length < CAUSES_MAX; ) {
    const cause = records.at(last.cause);
    if (cause === null) break;
    found.push(cause);
    last = cause;
  }
  const call = records.callOf(event);
  return inOrder(call === null ? found : [...found, call]);
};

const ofRecord = (about: About, event: Sequenced): Omit<Answer, 'about'> => {
  const { records, names, nowNs } = about;
  const sentence = sentenceOfAny(records, event).text;
  const thing = subjectOf(event.stream).kind === 'call' ? '' : ` of ${thingWords(names, event.stream)}`;
  return {
    headline: `record ${event.seq}, ${event.type}${thing}, ${duration(nowNs - event.atNs)} ago: ${bare(sentence)}`,
    facts: [],
    chain: causeChain(records, causesOf(about, event)),
  };
};

const ofCall = (about: About, received: EventOf<'call.received'>): Omit<Answer, 'about'> => {
  const story = callStory(about, received);
  return {
    headline: callHeadline(about, story),
    facts: callFacts(about, story),
    chain: chainOf(about.records, story.events, about.nowNs),
  };
};

/** Calls that make something are refused without a record while the disk is full. */
const ofNothing = (about: About, text: string): Answer | null => {
  const { records, nowNs } = about;
  const disk = records.newestOfNode(['disk.filled', 'disk.freed'], records.toSeq + 1);
  if (disk?.type !== 'disk.filled') return null;
  const since = `for ${duration(nowNs - disk.atNs)} (record ${disk.seq}, ${bytes(disk.body.freeBytes)} free)`;
  return {
    about: { kind: 'node', id: '', name: text },
    headline: `the disk has been full ${since}: whatever makes something is refused without a record, and nothing is recorded of "${text}"; free some space on the file system of the root directory`,
    facts: [],
    chain: chainOf(records, [disk], nowNs),
  };
};

const ofStream = (about: About, stream: string): Omit<Answer, 'about'> => {
  const { kind, id } = subjectOf(stream);
  switch (kind) {
    case 'container':
      return ofContainer(about, id);
    case 'sandbox':
      return ofPod(about, id);
    case 'image':
      return ofImage(about, id);
    case 'call':
    case 'node':
      throw new Error(`${stream} is nothing that can be asked about.`);
  }
};

const finished = (answer: Answer): Answer => ({
  ...answer,
  headline: `${capital(bare(answer.headline))}.`,
});

/** null: nobody knows anything of it. */
export const explain = (about: About, found: Found, text: string): Answer | null => {
  switch (found.kind) {
    case 'thing':
      return finished({
        about: { ...subjectOf(found.stream), name: thingWords(about.names, found.stream) },
        ...ofStream(about, found.stream),
      });
    case 'call': {
      const { received } = found;
      const name = received.body.request.method;
      return finished({ about: { kind: 'call', id: String(received.seq), name }, ...ofCall(about, received) });
    }
    case 'record': {
      const { event } = found;
      return finished({
        about: { ...subjectOf(event.stream), name: `record ${event.seq}` },
        ...ofRecord(about, event),
      });
    }
    case 'nothing': {
      const nothing = ofNothing(about, text);
      return nothing === null ? null : finished(nothing);
    }
  }
};
