/** Why a pod is as it is: its state, the one cause that counts, and what else is known of it. Pure. */
import { type Sequenced, sandboxStream } from '../../domain/model/records.ts';
import type { PodSandbox } from '../../domain/model/state.ts';
import { containersOf } from '../../domain/model/state.ts';
import { containerStateOf } from '../../domain/model/container-state.ts';
import { counted, duration } from '../format.ts';
import { podStateOf } from '../past/things.ts';
import type { Fact } from './answer.ts';
import { interruptedWords, waitsFor } from './container.ts';
import { type About, silenceFacts, silenceWords } from './story.ts';
import { failureWords } from './exit-words.ts';
import { askedFor, causeOf, isReboot, thingWords } from './people.ts';
import { firstOf, lastOf } from './records.ts';
import { type RefusedContainer, refusedContainers, refusedFacts, refusedWords } from './refused.ts';
import { slowestOf, type Step, stepName, stepsOf } from './steps.ts';

export interface PodStory {
  readonly id: string;
  readonly events: readonly Sequenced[];
  readonly steps: readonly Step[];
  /** null: it is gone. */
  readonly present: PodSandbox | null;
  /** Of one that is ready. */
  readonly refused: readonly RefusedContainer[];
}

export const podStory = (about: About, id: string): PodStory => {
  const { records, state } = about;
  const events = records.ofStream(sandboxStream(id));
  const present = state.sandboxes.get(id) ?? null;
  const refused = present?.phase === 'ready' ? refusedContainers(about, id) : [];
  return { id, events, steps: stepsOf(events), present, refused };
};

const byWhom = ({ records }: About, event: Sequenced | null): string => {
  const asked = event === null ? null : askedFor(records, event);
  return asked === null ? '' : ` by ${asked.by}`;
};

const notReady = (about: About, { events, steps }: PodStory): string | null => {
  const failed = lastOf(events, 'sandbox.failed');
  if (failed === null) return null;
  const { failure } = failed.body;
  if (failure.reason === 'Interrupted') return `was never made: ${interruptedWords(about, steps, failed)}`;
  return `was never made: ${failureWords(failure)}`;
};

const lostWords = ({ records }: About, { events }: PodStory): string | null => {
  const lost = lastOf(events, 'sandbox.lost');
  if (lost === null) return null;
  const shim = lastOf(events, 'shim.lost');
  if (isReboot(causeOf(records, lost))) return 'was ended by a reboot of the node';
  return `was lost: ${shim === null ? lost.body.message : `its shim was killed or died (${lost.body.message})`}`;
};

const endWords = (about: About, story: PodStory): string | null => {
  const { events } = story;
  const stopping = lastOf(events, 'sandbox.stopping');
  const removing = lastOf(events, 'sandbox.removing');
  const stopped = lastOf(events, 'sandbox.stopped');
  const removed = lastOf(events, 'sandbox.removed');
  const words: string[] = [];
  if (stopping !== null)
    words.push(`${stopped === null && removed === null ? 'is being' : 'was'} stopped${byWhom(about, stopping)}`);
  if (removing !== null) words.push(`${removed === null ? 'is being' : 'was'} removed${byWhom(about, removing)}`);
  if (removing === null && removed !== null) words.push('was removed');
  return words.length === 0 ? null : words.join(' and ');
};

const owedWords = ({ present }: PodStory): string => {
  const failure = present?.owedFailure ?? null;
  return failure === null ? '' : `; it still has to be undone: ${failureWords(failure)}`;
};

const waiting = ({ nowNs }: About, { steps }: PodStory): string => {
  const waits = waitsFor(steps, nowNs);
  return waits === null ? '' : `; now: ${waits}`;
};

/** The answer: one sentence without its end. */
export const podHeadline = (about: About, story: PodStory): string => {
  const subject = thingWords(about.names, sandboxStream(story.id));
  const failed = notReady(about, story);
  if (failed !== null) return `${subject} ${failed}${owedWords(story)}`;
  const lost = lostWords(about, story);
  const end = endWords(about, story);
  const gone = [lost, end].filter((words) => words !== null);
  if (gone.length > 0)
    return `${subject} ${gone.join('; it ')}${owedWords(story)}${story.present === null ? '' : waiting(about, story)}`;
  const ready = firstOf(story.events, 'sandbox.ready');
  if (ready === null) return `${subject} is being made${waiting(about, story)}`;
  const ago = about.nowNs > ready.atNs ? about.nowNs - ready.atNs : 0n;
  return `${subject} is ready since ${duration(ago)}${silenceWords(about, story.id)}${refusedWords(story.refused)}`;
};

export const podFacts = (about: About, { id, present, steps, refused }: PodStory): Fact[] => {
  const { state } = about;
  const containers = containersOf(state, id);
  const running = containers.filter((one) => containerStateOf(one) === 'CONTAINER_RUNNING').length;
  const slow = slowestOf(steps);
  const owed = present === null ? [] : Object.entries(present.steps).filter(([, step]) => step === 'owed');
  return [
    { name: 'state', text: present === null ? 'gone' : (podStateOf(present) ?? 'being made') },
    ...(present === null
      ? []
      : [{ name: 'containers', text: `${counted(containers.length, 'container')}, ${running} running` }]),
    ...(present === null || present.ips.length === 0 ? [] : [{ name: 'addresses', text: present.ips.join(', ') }]),
    ...silenceFacts(about, id),
    ...refusedFacts(about, refused),
    ...(slow === null ? [] : [{ name: 'slowest', text: `${stepName(slow.intent)}, ${duration(slow.tookNs ?? 0n)}` }]),
    ...(owed.length === 0
      ? []
      : [{ name: 'owed', text: `${owed.map(([name]) => name).join(', ')} is not undone yet, and is tried again` }]),
  ];
};
