/**
 * How a container ended, and by whose doing: the one cause among out of memory, a start that failed, a reboot, a lost
 * shim, a stop that somebody asked for, and its own program. Pure.
 */
import { sandboxStream } from '../../domain/model/records.ts';
import { SIGKILL } from '../../domain/values/signals.ts';
import { commandText, duration } from '../format.ts';
import { type About, type ContainerStory, memoryWords } from './story.ts';
import { signalName, signalOfStatus, statusWords } from './exit-words.ts';
import { askedFor, causeOf, isReboot } from './people.ts';
import { type EventOf, isOf, lastOf } from './records.ts';
import type { Step } from './steps.ts';

type Exited = EventOf<'container.exited'>;

/** Failing commands in a row that make a stop look like what a probe asked for. */
const PROBES_LOOKED_AT = 10;

export const endedHow = (about: About, story: ContainerStory, exited: Exited): string => {
  const { reason, message } = exited.body;
  const reboot = rebootOf(about, story, exited);
  if (reason === 'OOMKilled') return outOfMemory(story, exited);
  if (reason === 'StartError') return `could not be started: ${message}`;
  if (reboot) return 'ended when the node was rebooted';
  const lost = lastOf(story.events, 'container.lost');
  if (lost !== null || reason === 'Unknown') return lostWords(about, story, lost?.body.message ?? message);
  const stopping = lastOf(story.events, 'container.stopping');
  if (stopping !== null && stopping.seq < exited.seq) return stoppedWords(about, story, stopping, exited);
  return byItself(exited);
};

const outOfMemory = (story: ContainerStory, { body }: Exited): string =>
  `was killed by the kernel, out of memory: ${memoryWords(story)} (${statusWords(body.exitStatus)})`;

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

/** Calls of the same command in it that failed one after the other, right before it was stopped, newest first. */
export const failedProbeCalls = ({ records }: About, { events }: ContainerStory): number[] => {
  const stopping = lastOf(events, 'container.stopping');
  if (stopping === null) return [];
  const before = events.filter(({ seq, call }) => seq < stopping.seq && call !== null).toReversed();
  const recent = [...new Set(before.flatMap(({ call }) => call ?? []))].slice(0, PROBES_LOOKED_AT);
  const failed: number[] = [];
  let command: string | null = null;
  for (const seq of recent.toSorted((a, b) => b - a)) {
    const call = records.at(seq);
    if (!isOf(call, 'call.received') || call.body.request.method !== 'ExecSync') continue;
    const asked = JSON.stringify(call.body.request.cmd);
    if (command !== null && asked !== command) continue;
    const end = records.endOf(seq)?.body;
    if (end === undefined || (end.code === 0 && (end.response?.exitCode ?? 0) === 0)) break;
    command = asked;
    failed.push(seq);
  }
  return failed;
};

const probeWords = (about: About, story: ContainerStory): string | null => {
  const calls = failedProbeCalls(about, story);
  const [call] = calls.map(about.records.at);
  if (!isOf(call, 'call.received') || call.body.request.method !== 'ExecSync') return null;
  const times = calls.length === 1 ? '' : ` ${calls.length} times in a row`;
  return `after its probe "${commandText(call.body.request.cmd)}" failed${times}`;
};

/** SIGTERM was enough, or SIGKILL had to follow. */
const killWords = (steps: readonly Step[], stopping: EventOf<'container.stopping'>, exited: Exited): string => {
  const signals = steps.flatMap(({ intent, requestedSeq }) =>
    intent.kind === 'KillTask' && requestedSeq >= stopping.seq ? [intent.signal] : [],
  );
  const tookNs = BigInt(exited.body.exitedAtNs) - stopping.atNs;
  const took = tookNs > 0n ? ` after ${duration(tookNs)}` : '';
  const first = signals[0] ?? stopping.body.signal;
  const status = statusWords(exited.body.exitStatus);
  if (first !== SIGKILL && signals.includes(SIGKILL))
    return `it did not heed ${signalName(first)}, and SIGKILL ended it${took}: ${status}`;
  return `${signalName(first)} ended it${took}: ${status}`;
};

const stoppedWords = (
  about: About,
  story: ContainerStory,
  stopping: EventOf<'container.stopping'>,
  exited: Exited,
): string => {
  const asked = askedFor(about.records, stopping);
  const how = killWords(story.steps, stopping, exited);
  if (asked === null) return `was stopped by scribe; ${how}`;
  const { request } = asked.call.body;
  const withPod = asked.rpc === 'StopPodSandbox' || asked.rpc === 'RemovePodSandbox' ? ' with its pod' : '';
  const evicted =
    request.method === 'StopContainer' && request.evicted !== undefined ? ` (${request.evicted.reason})` : '';
  const probes = probeWords(about, story);
  const after = probes === null ? '' : ` ${probes}`;
  return `was stopped${withPod} by ${asked.by}${evicted}${after}; ${how}`;
};

const byItself = ({ body: { exitStatus } }: Exited): string => {
  const signal = signalOfStatus(exitStatus);
  if (exitStatus === 0) return 'ended by itself, successfully (exit code 0)';
  if (signal !== null)
    return `was ended by ${signalName(signal)} (exit code ${exitStatus}), which scribe did not send: its own program or another process did`;
  return `failed by itself: ${statusWords(exitStatus)}`;
};
