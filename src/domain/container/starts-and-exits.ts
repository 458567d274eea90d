/**
 * Writes down how a task began and how it ended, with exit code and reason, and answers the calls that wait for it.
 * Must not look at what comes next: advance.ts does, and a turn that threw goes without (node/failed-turns.ts).
 */
import { answer, emit, OK, type Turn } from '../deciding/turn.ts';
import { isRunning, runOf } from '../model/container-state.ts';
import type { Int64 } from '../model/cri.ts';
import type { ExitReason } from '../model/container-ended.ts';
import { type BodyOf, containerStream } from '../model/records.ts';
import type { Container, ContainerRun } from '../model/state.ts';
import { isEndToBeTold } from './hooks.ts';
import type { LaunchedTask, TaskExit } from '../model/tasks.ts';

/** What a shell says of a command that could not be run, and what kubelet expects with StartError. */
const START_ERROR_STATUS = 128;
const UNKNOWN_STATUS = 255;

function writeEnd(turn: Turn, container: Container, body: BodyOf<'container.exited'>): void {
  const stream = containerStream(container.id);
  emit(turn, stream, { type: 'container.exited', body });
  const ended = turn.state.containers.get(container.id);
  if (ended === undefined || !isEndToBeTold(turn.state, ended)) answer(turn, stream, ['StopContainer'], OK);
}

/** What the OCI runtime or the shim said of a start that failed. */
export function writeStartError(turn: Turn, container: Container, message: string): void {
  const exitedAtNs = String(turn.input.atNs);
  writeEnd(turn, container, { exitStatus: START_ERROR_STATUS, exitedAtNs, reason: 'StartError', message });
}

/** Nobody will tell how it ended. */
export function writeUnknownEnd(turn: Turn, container: Container, message: string): void {
  const exitedAtNs = String(turn.input.atNs);
  writeEnd(turn, container, { exitStatus: UNKNOWN_STATUS, exitedAtNs, reason: 'Unknown', message });
}

/** False when there is nothing to write down. */
export function writeExit(turn: Turn, containerId: string, exit: TaskExit): boolean {
  const container = turn.state.containers.get(containerId);
  const run = container === undefined || !isRunning(container) ? null : runOf(container);
  if (container === undefined || run === null) return false;
  const reason: ExitReason =
    run.oomed || exit.oomKills > 0 ? 'OOMKilled' : exit.exitStatus === 0 ? 'Completed' : 'Error';
  writeEnd(turn, container, {
    exitStatus: exit.exitStatus,
    exitedAtNs: notBefore(exit.exitedAtNs, run.startedAtNs),
    reason,
    message: endedWhy(run),
  });
  return true;
}

/** What CRI shows beside the reason. */
const endedWhy = ({ stop }: ContainerRun): string =>
  stop?.evicted === undefined ? '' : `It was evicted by the NRI plugin ${stop.evicted.plugin}: ${stop.evicted.reason}`;

/** The start of a task that ends at once is written down after its end: nobody shall see an end before the start. */
const notBefore = (atNs: Int64, earliestNs: Int64): Int64 => (BigInt(atNs) < BigInt(earliestNs) ? earliestNs : atNs);

/** False when it began already, or never will. */
export function writeStart(turn: Turn, containerId: string, task: LaunchedTask): boolean {
  const container = turn.state.containers.get(containerId);
  if (container?.phase.kind !== 'starting') return false;
  const { exitSeen } = container.phase;
  const stream = containerStream(containerId);
  emit(turn, stream, { type: 'container.started', body: task });
  answer(turn, stream, ['StartContainer'], OK);
  if (exitSeen !== null) writeExit(turn, containerId, exitSeen);
  return true;
}
