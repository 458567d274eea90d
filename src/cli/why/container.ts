/** Why a container is as it is: its state, the one cause that counts, and what else is known of it. Reads nothing itself. */
import { containerStateOf } from '../../domain/model/container-state.ts';
import { containerStream, type Sequenced, sandboxStream } from '../../domain/model/records.ts';
import type { Container } from '../../domain/model/state.ts';
import { bare } from '../../domain/values/sentence.ts';
import { duration, shortId } from '../format.ts';
import type { Fact } from './answer.ts';
import { endedHow } from './container-end.ts';
import { type About, type ContainerStory, memoryWords, silenceFacts, silenceWords } from './story.ts';
import { failureWords, signalName, statusWords } from './exit-words.ts';
import { askedFor, thingWords } from './people.ts';
import { fieldsOwnedBy } from './plugins.ts';
import { type EventOf, lastOf } from './records.ts';
import { isOpen, slowestOf, type Step, stepName } from './steps.ts';

const ago = (nowNs: bigint, atNs: bigint): string => `${duration(nowNs > atNs ? nowNs - atNs : 0n)} ago`;

/** What it waits for now: the first step without an outcome. */
export const waitsFor = (steps: readonly Step[], nowNs: bigint): string | null => {
  const open = steps.find((step) => isOpen(step) && step.intent.kind !== 'WaitUntil');
  return open === undefined ? null : `${stepName(open.intent)}, for ${duration(nowNs - open.requestedNs)}`;
};

/** Of a creation that was given up. */
const neverMade = (about: About, story: ContainerStory, failed: EventOf<'container.failed'>): string => {
  const { failure } = failed.body;
  if (failure.reason === 'Interrupted') return `was never made: ${interruptedWords(about, story.steps, failed)}`;
  return `was never made: ${failureWords(failure)}`;
};

/** The daemon ended in the middle: how, and during which step. */
export const interruptedWords = ({ records }: About, steps: readonly Step[], failed: Sequenced): string => {
  const started = records.newestOfNode(['daemon.started'], failed.seq + 1);
  const before = started === null ? null : records.newestOfNode(['daemon.started', 'daemon.stopped'], started.seq);
  const how = before?.type === 'daemon.stopped' ? 'the daemon was stopped' : 'the daemon was killed';
  const open = steps.find(
    (step) => step.requestedSeq < (started?.seq ?? 0) && (step.ended?.seq ?? Infinity) > (started?.seq ?? 0),
  );
  const during = open === undefined ? '' : ` in the middle of ${stepName(open.intent)}`;
  const reboot = started?.type === 'daemon.started' && started.body.rebooted;
  return `${reboot ? 'the node was rebooted' : how}${during}, and its next start undid what was begun`;
};

const removedWords = ({ records }: About, { events }: ContainerStory): string => {
  const removing = lastOf(events, 'container.removing');
  if (lastOf(events, 'container.removed') === null && removing === null) return '';
  const asked = removing === null ? null : askedFor(records, removing);
  const done = lastOf(events, 'container.removed') === null ? 'is being removed' : 'was removed';
  return `; it ${done}${asked === null ? '' : ` by ${asked.by}`}`;
};

const aliveWords = (about: About, { events, steps, present }: ContainerStory): string => {
  const { nowNs } = about;
  const kind = present?.phase.kind ?? 'creating';
  const waits = waitsFor(steps, nowNs);
  switch (kind) {
    case 'creating':
      return `is being made${waits === null ? '' : `: ${waits}`}`;
    case 'created': {
      const stopping = lastOf(events, 'container.stopping');
      if (stopping !== null) return evictedWords(about, stopping);
      return `was made ${ago(nowNs, BigInt(present?.createdAtNs ?? '0'))} and waits to be started: nobody has asked for that`;
    }
    case 'starting':
    case 'startLost':
      return `is being started${waits === null ? '' : `: ${waits}`}`;
    case 'dead':
      return `${DIED_MEANWHILE}, and its shim is asked how`;
    case 'lost':
      return losingWords(present);
    case 'running':
    case 'exited': {
      const started = lastOf(events, 'container.started');
      const stopping = lastOf(events, 'container.stopping');
      if (stopping !== null) return stoppingWords(about, stopping, steps);
      const archive = present?.checkpointArchive;
      const begun = archive === undefined ? 'started' : `restored from ${archive}`;
      const since = started === null ? '' : ` since it was ${begun} ${ago(nowNs, started.atNs)}`;
      return `runs${since}${again(present)}`;
    }
  }
};

const DIED_MEANWHILE = 'ended while the daemon was down';

/** It is EXITED as soon as nothing of its task is left. One that ran when its shim was given up may run until then. */
const losingWords = (present: Container | null): string => {
  const { phase } = present ?? {};
  if (phase?.kind !== 'lost') return 'is lost';
  return phase.foundDead
    ? `${DIED_MEANWHILE}, and nobody can say how: ${phase.message}, and what is left of its task is deleted`
    : `is given up: ${phase.message}, so what may still run of it is killed`;
};

/** Only plugins stop what was not started. */
const evictedWords = ({ records, nowNs }: About, stopping: EventOf<'container.stopping'>): string => {
  const asked = askedFor(records, stopping);
  const { plugin = '', reason = '' } = stopping.body.evicted ?? {};
  return `was evicted ${ago(nowNs, stopping.atNs)} by ${asked?.by ?? `NRI plugin ${plugin}`} (${reason}) before it was started, and can not be started any more`;
};

const stoppingWords = (
  { records, nowNs }: About,
  stopping: EventOf<'container.stopping'>,
  steps: readonly Step[],
): string => {
  const asked = askedFor(records, stopping);
  const sent = steps.findLast(({ intent }) => intent.kind === 'KillTask')?.intent;
  const signal = sent?.kind === 'KillTask' ? sent.signal : stopping.body.signal;
  const killAt = stopping.body.killAtNs === null ? null : BigInt(stopping.body.killAtNs);
  const left = killAt !== null && killAt > nowNs ? `; SIGKILL follows in ${duration(killAt - nowNs)}` : '';
  return `is being stopped${asked === null ? '' : ` by ${asked.by}`}, has not ended ${duration(nowNs - stopping.atNs)} after ${signalName(signal)}${left}`;
};

const attemptOf = (container: Container | null): number => container?.config.metadata?.attempt ?? 0;

const again = (container: Container | null): string => {
  const attempt = attemptOf(container);
  return attempt === 0 ? '' : `, after ${attempt} ${attempt === 1 ? 'restart' : 'restarts'}`;
};

/** The answer: one sentence without its end. */
export const containerHeadline = (about: About, story: ContainerStory): string => {
  const { events, id } = story;
  const subject = thingWords(about.names, containerStream(id));
  const failed = lastOf(events, 'container.failed');
  const exited = lastOf(events, 'container.exited');
  if (failed !== null) return `${subject} ${neverMade(about, story, failed)}`;
  const how = exited === null ? null : endedHow(about, story, exited);
  if (how !== null) return `${subject} ${bare(how)}${removedWords(about, story)}`;
  if (story.present === null && lastOf(events, 'container.removed') !== null)
    return `${subject} never ran${removedWords(about, story)}`;
  // What is said of one that is given up says what of its shim already.
  const silence = story.present?.phase.kind === 'lost' ? '' : silenceWords(about, story.present?.podSandboxId);
  return `${subject} ${aliveWords(about, story)}${silence}`;
};

/** Where its memory was counted, as the exit tells. */
const cgroupFacts = ({ events }: ContainerStory): Fact[] => {
  const cgroup = lastOf(events, 'task.exited')?.body.exit.memory?.cgroup;
  return cgroup === undefined ? [] : [{ name: 'cgroup', text: cgroup }];
};

const ranWords = (events: readonly Sequenced[]): Fact[] => {
  const started = lastOf(events, 'container.started');
  const exited = lastOf(events, 'container.exited');
  if (started === null || exited === null) return [];
  const ns = BigInt(exited.body.exitedAtNs) - started.atNs;
  return [{ name: 'ran', text: `for ${duration(ns > 0n ? ns : 0n)}` }];
};

/** Also in sandboxes that its pod had before, as before a reboot. */
const containersOfPod = ({ sandboxes, containers }: About['state'], podSandboxId: string): Container[] => {
  const uidOf = (id: string): string | undefined => sandboxes.get(id)?.config.metadata?.uid;
  const uid = uidOf(podSandboxId);
  const isOfPod = (id: string): boolean => id === podSandboxId || (uid !== undefined && uidOf(id) === uid);
  return [...containers.values()].filter((container) => isOfPod(container.podSandboxId));
};

/** The attempt of kubelet's before this one, while it is there. */
const restartFacts = ({ state, nowNs }: About, { present, requested, id }: ContainerStory): Fact[] => {
  const { attempt = 0, name } = requested?.body.config.metadata ?? {};
  if (attempt === 0) return [{ name: 'restarts', text: 'none' }];
  const before = containersOfPod(state, present?.podSandboxId ?? requested?.body.podSandboxId ?? '')
    .filter((other) => other.id !== id && other.config.metadata?.name === name && attemptOf(other) < attempt)
    .toSorted((a, b) => attemptOf(b) - attemptOf(a))[0];
  if (before?.phase.kind !== 'exited') return [{ name: 'restarts', text: `${attempt}` }];
  const { exit } = before.phase;
  const text = `${attempt}; the one before, ${shortId(before.id)}, ended ${ago(nowNs, BigInt(exit.finishedAtNs))}: ${statusWords(exit.exitStatus)} (${exit.reason})`;
  return [{ name: 'restarts', text }];
};

export const containerFacts = (about: About, story: ContainerStory): Fact[] => {
  const { events, requested, present, steps } = story;
  const exited = lastOf(events, 'container.exited');
  const state = present === null ? null : containerStateOf(present);
  const slow = slowestOf(steps);
  const owed = present?.owedFailure ?? null;
  const adjusted = lastOf(events, 'container.adjusted');
  return [
    { name: 'state', text: present === null ? 'gone' : (state ?? 'being made') },
    ...(exited === null
      ? []
      : [{ name: 'exit', text: `${statusWords(exited.body.exitStatus)} (${exited.body.reason})` }]),
    ...(exited?.body.reason === 'OOMKilled' ? [{ name: 'memory', text: memoryWords(story) }] : []),
    ...cgroupFacts(story),
    ...ranWords(events),
    ...restartFacts(about, story),
    ...(requested === null
      ? []
      : [
          { name: 'pod', text: thingWords(about.names, sandboxStream(requested.body.podSandboxId)) },
          {
            name: 'image',
            text:
              requested.body.config.image?.userSpecifiedImage ||
              requested.body.config.image?.image ||
              requested.body.imageId,
          },
        ]),
    ...(adjusted === null ? [] : [{ name: 'plugins', text: fieldsOwnedBy(adjusted.body.owners) }]),
    ...silenceFacts(about, present?.podSandboxId),
    ...(slow === null ? [] : [{ name: 'slowest', text: `${stepName(slow.intent)}, ${duration(slow.tookNs ?? 0n)}` }]),
    ...(owed === null ? [] : [{ name: 'owed', text: `to be undone, and tried again: ${owed.message}` }]),
  ];
};
