/** Why a call ended as it did, or has not yet: which step took how long, and which failed. Pure. */
import { rpcOf, type Sequenced } from '../../domain/model/records.ts';
import { subjectsOf } from '../../domain/call/catalogue.ts';
import { codeName } from '../../domain/model/errors.ts';
import { commandText, duration } from '../format.ts';
import { podLabel, podNameOf } from '../history/names.ts';
import { detailOf } from '../history/words.ts';
import type { Fact } from './answer.ts';
import { waitsFor } from './container.ts';
import type { About } from './story.ts';
import { failureWords, statusWords } from './exit-words.ts';
import { askerOf, thingWords } from './people.ts';
import type { EventOf } from './records.ts';
import { isOpen, slowestOf, stepName, stepsOf } from './steps.ts';

export interface CallStory {
  readonly received: EventOf<'call.received'>;
  readonly completed: EventOf<'call.completed'> | null;
  readonly events: readonly Sequenced[];
}

export const callStory = ({ records }: About, received: EventOf<'call.received'>): CallStory => ({
  received,
  completed: records.endOf(received.seq),
  events: records.ofCall(received.seq),
});

/** What it is about, in words. */
const objectWords = ({ names }: About, { received, completed }: CallStory): string => {
  const { request } = received.body;
  if (request.method === 'RunPodSandbox' || request.method === 'RestorePod')
    return ` of pod ${podLabel(podNameOf(request.config.metadata ?? {}))}`;
  if (request.method === 'CreateContainer') {
    const pod = names.pod(request.podSandboxId);
    return ` of container ${request.config.metadata?.name ?? '?'}${pod === null ? '' : ` in pod ${podLabel(pod)}`}`;
  }
  if (request.method === 'PullImage' || request.method === 'RemoveImage') return ` of image ${request.image}`;
  const [stream] = subjectsOf(request);
  return stream === undefined || completed?.body.method === 'Refused' ? '' : ` of ${thingWords(names, stream)}`;
};

const isExec = (method: string): boolean => method === 'ExecSync' || method === 'ExecSession';

const failedExec = ({ received, completed }: CallStory): string | null => {
  const { request } = received.body;
  const failure = completed?.body.failure;
  if (request.method !== 'ExecSync' || failure?.reason !== 'TimedOut') return null;
  // Where its shim gave no answer, nobody knows whether it ran.
  if (!failure.message.endsWith(' and was killed.')) return null;
  return `ran longer than its timeout of ${request.timeoutSeconds} s, and "${commandText(request.cmd)}" was killed`;
};

/** The answer: one sentence without its end. */
export const callHeadline = (about: About, story: CallStory): string => {
  const { received, completed, events } = story;
  const subject = `${rpcOf(received.body.request)}${objectWords(about, story)} by ${askerOf(received)}`;
  const steps = stepsOf(events);
  if (completed === null) {
    const since = duration(about.nowNs > received.atNs ? about.nowNs - received.atNs : 0n);
    const waits = waitsFor(steps, about.nowNs) ?? waitsElsewhere(about, received.seq);
    return `${subject} is under way since ${since}${waits === null ? '' : `; it waits for ${waits}`}`;
  }
  const { code, failure, durationNs, response } = completed.body;
  const took = duration(BigInt(durationNs));
  const timedOut = failedExec(story);
  if (timedOut !== null) return `${subject} ${timedOut}`;
  if (failure !== undefined) return `${subject} failed after ${took} with ${codeName(code)}: ${failureWords(failure)}`;
  const slow = slowestOf(steps);
  const slowest =
    slow === null ? '' : `; the slowest step was ${stepName(slow.intent)}, ${duration(slow.tookNs ?? 0n)}`;
  const exit = isExec(completed.body.method) ? `: ${statusWords(response?.exitCode ?? 0)}` : '';
  return `${subject} succeeded in ${took}${exit}${slowest}`;
};

/** An effect of another call that it joined, by what it waits for. */
const waitsElsewhere = ({ state, nowNs, records }: About, seq: number): string | null => {
  const target = state.calls.get(seq)?.target;
  if (target === undefined) return null;
  const open = stepsOf(records.ofStream(target)).filter(isOpen);
  return waitsFor(open, nowNs);
};

export const callFacts = ({ nowNs }: About, { received, completed, events }: CallStory): Fact[] => {
  const { request, deadlineNs } = received.body;
  const detail = detailOf(request);
  const slow = slowestOf(stepsOf(events));
  return [
    { name: 'state', text: completed === null ? 'under way' : codeName(completed.body.code) },
    { name: 'took', text: duration(completed === null ? nowNs - received.atNs : BigInt(completed.body.durationNs)) },
    ...(detail === '' ? [] : [{ name: 'request', text: detail }]),
    ...(deadlineNs === null
      ? []
      : [{ name: 'deadline', text: `${duration(BigInt(deadlineNs) - received.atNs)} after it began` }]),
    ...(slow === null ? [] : [{ name: 'slowest', text: `${stepName(slow.intent)}, ${duration(slow.tookNs ?? 0n)}` }]),
    ...(completed?.body.detached === true ? [{ name: 'caller', text: 'had gone before it ended' }] : []),
  ];
};
