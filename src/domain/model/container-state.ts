/** What the phases of a container say: its CRI state first, then what deciders and readers ask most. Must decide nothing. */
import type { Int64, LinuxContainerResources } from './cri.ts';
import type { Failure } from './errors.ts';
import type { Eviction } from './records.ts';
import type { Container, ContainerExit, ContainerRun, ContainerStop, StepState, TaskAhead } from './state.ts';
import type { LaunchedTask } from './tasks.ts';

/**
 *   (creating) ──> CREATED ──> RUNNING ──> EXITED
 *                     └──(StartError)───────^
 * EXITED never becomes anything else. A container found dead at start-up is EXITED at once; its code follows.
 */
export type ContainerState = 'CONTAINER_CREATED' | 'CONTAINER_RUNNING' | 'CONTAINER_EXITED';

/** null while it is being created or its creation is being undone: CRI does not show it then. */
export function containerStateOf({ phase }: Container): ContainerState | null {
  switch (phase.kind) {
    case 'creating':
      return null;
    case 'created':
    case 'starting':
    case 'startLost':
      return 'CONTAINER_CREATED';
    case 'running':
      return 'CONTAINER_RUNNING';
    case 'lost':
      return phase.foundDead ? 'CONTAINER_EXITED' : 'CONTAINER_RUNNING';
    case 'dead':
    case 'exited':
      return 'CONTAINER_EXITED';
  }
}

/** container.created was recorded: clients may know of it. */
export const isCreated = ({ phase }: Container): boolean => phase.kind !== 'creating';

/** Somebody was told its id, or asked for it again. */
export const isClaimed = ({ phase }: Container): boolean =>
  phase.kind === 'created' ? phase.claimed : phase.kind !== 'creating';

/** StartContainer was asked for, and nobody can say yet how that went. */
export const isStarting = ({ phase }: Container): boolean => phase.kind === 'starting' || phase.kind === 'startLost';

/** Its start waits for what it needs: nothing was asked of a shim. */
export const waitsToStart = ({ phase }: Container): boolean => phase.kind === 'starting' && phase.launch === 'none';

/** Whether its start was under way when the daemon ended, so that its shim has to say what became of it (C19). */
export const isStartInDoubt = ({ phase }: Container): boolean =>
  phase.kind === 'starting' && phase.launch === 'inDoubt';

/** Its process may be alive: it was launched, and no exit is known. */
export const isRunning = ({ phase: { kind } }: Container): boolean =>
  kind === 'running' || kind === 'dead' || kind === 'lost';

/** It is shown as EXITED, and nobody knows the exit code yet (C18). */
export const isExitPending = ({ phase }: Container): boolean =>
  phase.kind === 'dead' || (phase.kind === 'lost' && phase.foundDead);

/** null until it was started. */
export const runOf = (container: Container | undefined): ContainerRun | null =>
  container !== undefined && 'run' in container.phase ? container.phase.run : null;

/** null: nobody wants it stopped, or it never ran. */
export const stopOf = ({ phase }: Container): ContainerStop | null =>
  'stop' in phase ? phase.stop : 'run' in phase ? (phase.run?.stop ?? null) : null;

/** An NRI plugin wants it gone before it ran; null: none does. */
export const evictedUnstarted = ({ phase }: Container): Eviction | null =>
  phase.kind === 'creating' || phase.kind === 'created' ? (phase.evicted ?? null) : null;

export const startedAtNsOf = (container: Container): Int64 | null => runOf(container)?.startedAtNs ?? null;

/** null as long as it has not exited. */
export const containerExitOf = (container: Container | undefined): ContainerExit | null =>
  container?.phase.kind === 'exited' ? container.phase.exit : null;

/** The process that it should be: null before its start, and once its exit is known. */
export const liveTaskOf = (container: Container | undefined): LaunchedTask | null =>
  container !== undefined && isRunning(container) ? (runOf(container)?.task ?? null) : null;

/** Of making its task, or of deleting it. */
export function taskStepOf({ phase }: Container): StepState {
  switch (phase.kind) {
    case 'creating':
      return 'none';
    case 'created':
      return phase.ahead?.step ?? 'none';
    case 'starting':
      return phase.launch === 'none' || phase.launch === 'failed' ? phase.launch : 'doing';
    case 'running':
    case 'dead':
      return 'done';
    case 'startLost':
    case 'lost':
    case 'exited':
      return phase.taskLeft;
  }
}

/** undefined: none was made before somebody asked for its start. */
export const taskAheadOf = ({ phase }: Container): TaskAhead | undefined =>
  phase.kind === 'created' ? phase.ahead : undefined;

/** A shim may have something of a task of it. */
export function mayHaveTask(container: Container): boolean {
  const step = taskStepOf(container);
  return step !== 'none' && step !== 'undone';
}

export const containerStepsOf = (container: Container): Readonly<Record<'files' | 'task', StepState>> => ({
  files: container.files,
  task: taskStepOf(container),
});

/** Nobody has told yet how this process of it ended. */
export function awaitsExit(container: Container, pid: number): boolean {
  const { phase } = container;
  if (phase.kind === 'exited' || !mayHaveTask(container)) return false;
  // What ends now is the task that was made ahead and is deleted, not the one that the start will make.
  if (phase.kind === 'starting' && (phase.launch === 'stale' || phase.launch === 'clearing')) return false;
  return 'run' in phase ? phase.run.task.pid === pid : 'exitSeen' in phase && phase.exitSeen === null;
}

/** It has a task, or may have one, and nobody has told yet that it ran out of memory. */
export function mayRunOutOfMemory(container: Container): boolean {
  const { phase } = container;
  if (phase.kind === 'exited') return false;
  return 'run' in phase ? !phase.run.oomed : 'oomed' in phase && !phase.oomed;
}

/** Commands in it that are not known to have ended. */
export function execsOf(container: Container): readonly string[] {
  const run = runOf(container);
  return run === null ? [] : [...run.execs, ...run.staleExecs];
}

/** The limits that hold for it: those it was created with, until they are changed. */
export const resourcesOf = ({ resources, config }: Container): LinuxContainerResources | undefined =>
  resources ?? config.linux?.resources;

export const notFound = (containerId: string): Failure => ({
  reason: 'ContainerNotFound',
  message: `container_id ${containerId} names no container.`,
});

/** To whoever waits for it to be made or started. */
export const removedMeanwhile = (containerId: string): Failure => ({
  reason: 'Cancelled',
  message: `Container ${containerId} was removed meanwhile.`,
});
