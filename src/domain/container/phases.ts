/**
 * Every way from one phase of a container to another, and what changes within one. A change that makes no sense in a
 * phase changes nothing: evolve never fails. The picture is with the type, in model/state.ts.
 */
import type {
  ContainerExit,
  ContainerPhase,
  ContainerRun,
  ContainerStop,
  KillState,
  TaskAhead,
  TaskLeft,
} from '../model/state.ts';
import { interrupted } from '../deciding/step-states.ts';
import type { LaunchedTask, TaskExit } from '../model/tasks.ts';

type PhaseOf<K extends ContainerPhase['kind']> = Extract<ContainerPhase, { kind: K }>;

export const CREATING: ContainerPhase = { kind: 'creating', inspection: 'none' };

export const inspected = (phase: ContainerPhase, inspection: PhaseOf<'creating'>['inspection']): ContainerPhase =>
  phase.kind === 'creating' ? { ...phase, inspection } : phase;

export function created(phase: ContainerPhase, claimed: boolean): ContainerPhase {
  if (phase.kind !== 'creating') return phase;
  const { evicted } = phase;
  return { kind: 'created', claimed, ...(evicted === undefined ? {} : { evicted }) };
}

export const claimed = (phase: ContainerPhase): ContainerPhase =>
  phase.kind === 'created' ? { ...phase, claimed: true } : phase;

/** A task that was made ahead is taken over as far as it is. */
export function starting(phase: ContainerPhase): ContainerPhase {
  if (phase.kind !== 'created') return phase;
  const { ahead } = phase;
  const made = ahead?.step === 'done' ? { made: ahead.task } : {};
  return { kind: 'starting', launch: launchAfter(ahead), ...made, exitSeen: null, oomed: false, stop: null };
}

function launchAfter(ahead: TaskAhead | undefined): PhaseOf<'starting'>['launch'] {
  switch (ahead?.step) {
    case undefined:
    case 'undone':
      return 'none';
    case 'doing':
      return 'making';
    case 'done':
      return 'made';
    case 'failed':
    case 'owed':
      return 'stale';
    case 'undoing':
      return 'clearing';
  }
}

/** Somebody has asked for its task; before its start was asked for, that is a task ahead. */
export function making(phase: ContainerPhase): ContainerPhase {
  if (phase.kind !== 'created') return launched(phase, 'making');
  return phase.ahead === undefined ? { ...phase, ahead: { step: 'doing' } } : phase;
}

/** Its task is there, and waits to be started. */
export function made(phase: ContainerPhase, task: LaunchedTask): ContainerPhase {
  if (phase.kind === 'created') return ahead(phase, { step: 'done', task });
  return phase.kind === 'starting' && phase.launch === 'making' ? { ...phase, launch: 'made', made: task } : phase;
}

/** Where there is a task ahead. */
const ahead = (phase: PhaseOf<'created'>, to: TaskAhead): ContainerPhase =>
  phase.ahead === undefined ? phase : { ...phase, ahead: to };

export const launched = (phase: ContainerPhase, launch: PhaseOf<'starting'>['launch']): ContainerPhase =>
  phase.kind === 'starting' ? { ...phase, launch } : phase;

export function started(phase: ContainerPhase, task: LaunchedTask, startedAtNs: string): ContainerPhase {
  if (phase.kind !== 'starting') return phase;
  const { oomed, stop } = phase;
  return { kind: 'running', run: { task, startedAtNs, oomed, stop, execs: [], staleExecs: [] } };
}

/** Nobody will say any more how it ends, or whether it was started. */
export function lost(phase: ContainerPhase, message: string): ContainerPhase {
  switch (phase.kind) {
    case 'starting': {
      const { exitSeen, oomed, stop } = phase;
      return phase.launch === 'inDoubt' || phase.launch === 'failed'
        ? { kind: 'startLost', message, taskLeft: 'failed', exitSeen, oomed, stop }
        : phase;
    }
    case 'running':
    case 'dead':
      return { kind: 'lost', run: phase.run, message, foundDead: phase.kind === 'dead', taskLeft: 'done' };
    default:
      return phase;
  }
}

/** An exit that is known stays as it is. */
export function exited(phase: ContainerPhase, exit: ContainerExit): ContainerPhase {
  switch (phase.kind) {
    case 'creating':
    case 'created':
    case 'exited':
      return phase;
    case 'starting':
      return { kind: 'exited', exit, run: null, taskLeft: phase.launch === 'none' ? 'none' : 'failed' };
    case 'startLost':
      return { kind: 'exited', exit, run: null, taskLeft: phase.taskLeft };
    case 'running':
    case 'dead':
      return { kind: 'exited', exit, run: phase.run, taskLeft: 'done' };
    case 'lost':
      return { kind: 'exited', exit, run: phase.run, taskLeft: phase.taskLeft };
  }
}

/** An exit told of while the start is not: it counts once that is. */
export const exitSeen = (phase: ContainerPhase, exit: TaskExit): ContainerPhase =>
  'exitSeen' in phase && phase.exitSeen === null ? { ...phase, exitSeen: exit } : phase;

export const oomed = (phase: ContainerPhase): ContainerPhase =>
  'oomed' in phase ? { ...phase, oomed: true } : withRun(phase, (run) => ({ ...run, oomed: true }));

export function withRun(phase: ContainerPhase, change: (run: ContainerRun) => ContainerRun): ContainerPhase {
  return 'run' in phase && phase.run !== null ? { ...phase, run: change(phase.run) } : phase;
}

export function stopping(
  phase: ContainerPhase,
  { signal, killAtNs, evicted }: Pick<ContainerStop, 'signal' | 'killAtNs' | 'evicted'>,
): ContainerPhase {
  if (phase.kind === 'creating' || phase.kind === 'created')
    return evicted === undefined ? phase : { ...phase, evicted };
  const wanted = (stop: ContainerStop | null): ContainerStop => ({
    kill: 'none',
    killSignal: 0,
    ...stop,
    signal,
    killAtNs,
    ...(evicted === undefined ? {} : { evicted }),
  });
  return 'stop' in phase
    ? { ...phase, stop: wanted(phase.stop) }
    : withRun(phase, (run) => ({ ...run, stop: wanted(run.stop) }));
}

/** `killSignal` is left out where the signal stays the same. */
export const killed = (phase: ContainerPhase, kill: KillState, killSignal?: number): ContainerPhase =>
  withRun(phase, (run) =>
    run.stop === null
      ? run
      : { ...run, stop: { ...run.stop, kill, ...(killSignal === undefined ? {} : { killSignal }) } },
  );

export function withTaskLeft(phase: ContainerPhase, taskLeft: TaskLeft): ContainerPhase {
  if (phase.kind === 'created') return ahead(phase, { step: taskLeft });
  if (phase.kind === 'starting') return cleared(phase, taskLeft);
  return 'taskLeft' in phase ? { ...phase, taskLeft } : phase;
}

/** A start that has what was made ahead deleted first, and fails when that does. */
function cleared(phase: PhaseOf<'starting'>, taskLeft: TaskLeft): ContainerPhase {
  if (phase.launch !== 'stale' && phase.launch !== 'clearing') return phase;
  const launch = ({ failed: 'stale', undoing: 'clearing', undone: 'none', owed: 'failed' } as const)[taskLeft];
  return { ...phase, launch };
}

/** A deletion that failed is tried once more. */
export function deletedAgain(phase: ContainerPhase): ContainerPhase {
  if (phase.kind === 'created') return phase.ahead?.step === 'owed' ? ahead(phase, { step: 'failed' }) : phase;
  return 'taskLeft' in phase && phase.taskLeft === 'owed' ? { ...phase, taskLeft: 'failed' } : phase;
}

/**
 * A daemon has started. `exit` is how the node's end has ended whatever ran; null: it did not end. `dead`: its process was
 * found dead.
 */
export function restarted(phase: ContainerPhase, exit: ContainerExit | null, dead: boolean): ContainerPhase {
  switch (phase.kind) {
    case 'creating':
      return { ...phase, inspection: interrupted(phase.inspection) };
    case 'created':
      // What there is of a task ahead is not taken over by another life of the daemon.
      return phase.ahead === undefined || phase.ahead.step === 'undone' ? phase : ahead(phase, { step: 'failed' });
    case 'starting':
      if (phase.launch === 'none' || phase.launch === 'failed') return phase;
      return { ...phase, launch: exit === null ? 'inDoubt' : 'failed' };
    case 'startLost':
      return { ...phase, taskLeft: interrupted(phase.taskLeft) };
    case 'running':
    case 'dead': {
      const run = restartedRun(phase.run, exit !== null);
      if (exit !== null) return { kind: 'exited', exit, run, taskLeft: 'done' };
      return { kind: dead ? 'dead' : phase.kind, run };
    }
    case 'lost': {
      const [run, taskLeft] = [restartedRun(phase.run, exit !== null), interrupted(phase.taskLeft)];
      if (exit !== null) return { kind: 'exited', exit, run, taskLeft };
      return { ...phase, run, taskLeft, foundDead: dead || phase.foundDead };
    }
    case 'exited':
      return phase.run === null
        ? { ...phase, taskLeft: interrupted(phase.taskLeft) }
        : { ...phase, run: restartedRun(phase.run, exit !== null), taskLeft: interrupted(phase.taskLeft) };
  }
}

const restartedRun = (run: ContainerRun, rebooted: boolean): ContainerRun => ({
  ...run,
  stop: run.stop === null ? null : { ...run.stop, kill: 'none' },
  execs: [],
  staleExecs: rebooted ? [] : [...run.staleExecs, ...run.execs],
});
