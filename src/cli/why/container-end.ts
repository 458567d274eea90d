/**
 * How a container ended, and by whose doing: the one cause among out of memory, a start that failed, a reboot, a lost
 * shim, a stop that somebody asked for, and its own program. Pure.
 */
import { type Caller, sandboxStream } from '../../domain/model/records.ts';
import { SIGKILL } from '../../domain/values/signals.ts';
import { commandText, duration } from '../format.ts';
import { type About, type ContainerStory, memoryWords } from './story.ts';
import { signalName, signalOfStatus, statusWords } from './exit-words.ts';
import { askedFor, causeOf, isReboot } from './people.ts';
import { type EventOf, firstOf, isOf, lastOf } from './records.ts';
import type { Step } from './steps.ts';

type Exited = EventOf<'container.exited'>;
type Stopping = EventOf<'container.stopping'>;

/** The newest before a stop, which are looked through for what failed. */
const CALLS_LOOKED_AT = 100;
/** Behind the grace of its containers the stop of a pod takes so long to follow. */
const POD_FOLLOWS_NS = 5_000_000_000n;

export const endedHow = (about: About, story: ContainerStory, exited: Exited): string => {
  const { reason, message } = exited.body;
  const reboot = rebootOf(about, story, exited);
  const stopping = lastOf(story.events, 'container.stopping');
  const stop = stopping !== null && stopping.seq < exited.seq ? stopping : null;
  if (reason === 'OOMKilled') return outOfMemory(about, story, stop, exited);
  if (reason === 'StartError') return `could not be started: ${message}`;
  if (reboot) return 'ended when the node was rebooted';
  const lost = lastOf(story.events, 'container.lost');
  if (lost !== null || reason === 'Unknown') return lostWords(about, story, lost?.body.message ?? message);
  return stop === null ? byItself(exited) : stoppedWords(about, story, stop, exited);
};

/** Signals that scribe sent from that stop on. */
const signalsSince = (steps: readonly Step[], stopping: Stopping): number[] =>
  steps.flatMap(({ intent, requestedSeq }) =>
    intent.kind === 'KillTask' && requestedSeq >= stopping.seq ? [intent.signal] : [],
  );

/** What the kernel kills may be one process of several: the container itself then goes on, and ends in another way. */
const outOfMemory = (about: About, story: ContainerStory, stop: Stopping | null, exited: Exited): string => {
  const { exitStatus } = exited.body;
  const isKilled = signalOfStatus(exitStatus) === SIGKILL;
  if (isKilled && (stop === null || !signalsSince(story.steps, stop).includes(SIGKILL)))
    return `was killed by the kernel, out of memory: ${memoryWords(story)} (${statusWords(exitStatus)})`;
  const how = stop === null ? byItself(exited) : stoppedWords(about, story, stop, exited);
  return `${how}; the kernel had killed a process of it, out of memory: ${memoryWords(story)}`;
};

/** A start of the daemon that found the kernel to be another boot, and this among what is dead. */
const rebootOf = ({ records }: About, { id, events }: ContainerStory, exited: Exited): boolean => {
  const lost = lastOf(events, 'container.lost');
  const causes = [causeOf(records, exited), lost === null ? null : causeOf(records, lost)];
  if (causes.some(isReboot)) return true;
  const started = records.newestOfNode(['daemon.started'], exited.seq);
  if (!isOf(started, 'daemon.started') || !started.body.rebooted) return false;
  const run = lastOf(events, 'container.started');
  return started.body.deadTasks.includes(id) && (run === null || run.seq < started.seq);
};

const lostWords = ({ records, state }: About, { requested }: ContainerStory, message: string): string => {
  const podId = requested?.body.podSandboxId ?? '';
  const shimLost = lastOf(records.ofStream(sandboxStream(podId)), 'shim.lost');
  const pid = state.sandboxes.get(podId)?.shim?.pid;
  const shim = shimLost === null ? message : `its shim${pid === undefined ? '' : ` (pid ${pid})`} was killed or died`;
  const what = shim === '' ? 'nobody could say how' : shim;
  return `was lost: ${what}, so nobody knows its exit code`;
};

interface Command {
  readonly seq: number;
  readonly text: string;
  /** null: who asked for it was not told, or not how it ended. */
  readonly failed: boolean | null;
  /** It may run as long as it likes: kubelet gives its probes a time and its hooks none. */
  readonly isHook: boolean;
}

/** Without an exit code kubelet takes a command for neither failed nor succeeded, unless its time was up. */
const hasFailed = ({ code, response, failure }: EventOf<'call.completed'>['body']): boolean | null => {
  if (code === 0) return (response?.exitCode ?? 0) !== 0;
  return failure?.reason === 'TimedOut' ? true : null;
};

/** Calls on whose behalf something was done in it before it was to be stopped, newest first. */
const callsBefore = ({ events }: ContainerStory, stopping: Stopping): number[] => {
  const calls = events.flatMap(({ seq, call }) => (seq < stopping.seq && call !== null ? [call] : []));
  return [...new Set(calls)].toSorted((a, b) => b - a);
};

/** Somebody at a terminal runs one program after the other: what the one before saw is no reason of the next. */
const isSameProcess = (one: Caller | null | undefined, other: Caller | null | undefined): boolean =>
  one?.pid === other?.pid && one?.startTicks === other?.startTicks && one?.executable === other?.executable;

/**
 * What the process that had it stopped had run in it by then. What the stop itself has ended had not failed before; what
 * others ran in it is none of a stop's reasons.
 */
const commandsIn = ({ records }: About, stopping: Stopping, calls: readonly number[]): Command[] => {
  const caller = records.callOf(stopping)?.body.caller;
  return calls.flatMap((seq) => {
    const call = records.at(seq);
    const end = records.endOf(seq);
    if (!isOf(call, 'call.received') || call.body.request.method !== 'ExecSync') return [];
    if (end === null || end.seq > stopping.seq || !isSameProcess(call.body.caller, caller)) return [];
    const { cmd, timeoutSeconds } = call.body.request;
    return [{ seq, text: commandText(cmd), failed: hasFailed(end.body), isHook: timeoutSeconds === '0' }];
  });
};

interface FailedInARow {
  /** Newest first. */
  readonly commands: readonly Command[];
  /** It is known that it did not fail before. */
  readonly isWhole: boolean;
}

/** The newest that failed and has not succeeded since, each time that it did so. */
const failedInARow = (commands: readonly Command[]): FailedInARow => {
  const known = commands.filter(({ failed }) => failed !== null);
  const last = known.find(({ failed, text }, index) => failed && known.findIndex((one) => one.text === text) === index);
  const same = known.filter(({ text }) => text === last?.text);
  const succeeded = same.findIndex(({ failed }) => !failed);
  return { commands: succeeded === -1 ? same : same.slice(0, succeeded), isWhole: succeeded !== -1 };
};

/** What failed in it right before it was stopped: a probe, or else a hook. */
const failedBefore = (about: About, story: ContainerStory): FailedInARow => {
  const stopping = lastOf(story.events, 'container.stopping');
  if (stopping === null) return { commands: [], isWhole: true };
  const calls = callsBefore(story, stopping);
  const commands = commandsIn(about, stopping, calls.slice(0, CALLS_LOOKED_AT));
  const probes = failedInARow(commands.filter(({ isHook }) => !isHook));
  const failed = probes.commands.length > 0 ? probes : failedInARow(commands.filter(({ isHook }) => isHook));
  return { ...failed, isWhole: failed.isWhole || calls.length <= CALLS_LOOKED_AT };
};

/** Calls of what failed in it right before it was stopped, newest first. */
export const failedCommandCalls = (about: About, story: ContainerStory): number[] =>
  failedBefore(about, story).commands.map(({ seq }) => seq);

const failedWords = (about: About, story: ContainerStory): string => {
  const { commands, isWhole } = failedBefore(about, story);
  const [last] = commands;
  if (last === undefined) return '';
  const times = commands.length === 1 ? '' : ` ${isWhole ? '' : 'at least '}${commands.length} times in a row`;
  return ` after its ${last.isHook ? 'hook' : 'probe'} "${last.text}" failed${times}`;
};

/** SIGTERM was enough, or SIGKILL had to follow. */
const killWords = (steps: readonly Step[], stopping: Stopping, exited: Exited): string => {
  const signals = signalsSince(steps, stopping);
  const tookNs = BigInt(exited.body.exitedAtNs) - stopping.atNs;
  const took = tookNs > 0n ? ` after ${duration(tookNs)}` : '';
  const first = signals[0] ?? stopping.body.signal;
  const status = statusWords(exited.body.exitStatus);
  if (first !== SIGKILL && signals.includes(SIGKILL))
    return `it did not heed ${signalName(first)}, and SIGKILL ended it${took}: ${status}`;
  const other = signalOfStatus(exited.body.exitStatus);
  if (other !== null && other !== first)
    return `it had ${signalName(first)}, and ${signalName(other)}, which scribe did not send, ended it${took}: ${status}`;
  return `${signalName(first)} ended it${took}: ${status}`;
};

/**
 * kubelet stops a pod by stopping its containers first, all within one grace, and then the pod. A probe that kept failing until
 * then, as one of readiness may, has nothing to do with it.
 */
const thenPodWords = ({ records }: About, { requested }: ContainerStory, { atNs, body }: Stopping): string => {
  const stopped = firstOf(records.ofStream(sandboxStream(requested?.body.podSandboxId ?? '')), 'sandbox.stopping');
  if (stopped === null || stopped.atNs < atNs || body.killAtNs === null) return '';
  return stopped.atNs <= BigInt(body.killAtNs) + POD_FOLLOWS_NS ? ', and then its pod,' : '';
};

const stoppedWords = (about: About, story: ContainerStory, stopping: Stopping, exited: Exited): string => {
  const asked = askedFor(about.records, stopping);
  const how = killWords(story.steps, stopping, exited);
  if (asked === null) return `was stopped by scribe; ${how}`;
  const { request } = asked.call.body;
  const withPod = asked.rpc === 'StopPodSandbox' || asked.rpc === 'RemovePodSandbox' ? ' with its pod' : '';
  const evicted =
    request.method === 'StopContainer' && request.evicted !== undefined ? ` (${request.evicted.reason})` : '';
  const thenPod = withPod === '' ? thenPodWords(about, story, stopping) : '';
  const stopped = `was stopped${withPod} by ${asked.by}${evicted}${thenPod}${failedWords(about, story)}`;
  return `${stopped.replace(/,$/, '')}; ${how}`;
};

const byItself = ({ body: { exitStatus } }: Exited): string => {
  const signal = signalOfStatus(exitStatus);
  if (exitStatus === 0) return 'ended by itself, successfully (exit code 0)';
  if (signal !== null)
    return `was ended by ${signalName(signal)} (exit code ${exitStatus}), which scribe did not send: its own program or another process did`;
  return `failed by itself: ${statusWords(exitStatus)}`;
};
