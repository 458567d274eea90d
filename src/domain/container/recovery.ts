/** What the containers of a pod learn when its shim was asked anew: after a restart, or when an exit was overdue. */
import { afterMs, ensureTimer, type Turn } from '../deciding/turn.ts';
import { isExitPending, isStartInDoubt, stopOf } from '../model/container-state.ts';
import type { EffectResults } from '../model/effects.ts';
import { containerStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import { type Container, containersOf, SILENCES_MAX } from '../model/state.ts';
import type { ObservedTask } from '../model/tasks.ts';
import { SIGKILL } from '../values/signals.ts';
import { advanceContainer, EXIT_OVERDUE_MS, loseContainer, recordExit, recordStart } from './advance.ts';
import { failStart } from './launch.ts';
import { endStaleExecs, resumeExecs } from './exec.ts';

export const SHIM_GONE = 'its shim ended';
const SHIM_MUTE = 'its shim does not answer';
const NEVER_MADE = 'the daemon ended before the task was made';
const NEVER_STARTED = 'the daemon ended before the task was started';
const NEVER_BEGAN = 'the daemon ended while the task was being started, whose process ended before its command began';

/** `result`: undefined when it did not answer, for the `silences`-th time in a row. */
export function containersAfterReconnect(
  turn: Turn,
  podSandboxId: string,
  result: EffectResults['ReconnectShim'] | undefined,
  silences: number,
): void {
  for (const container of containersOf(turn.state, podSandboxId)) {
    if (result === undefined) afterMute(turn, container, silences);
    else if (result.gone) loseContainer(turn, container.id, SHIM_GONE);
    else
      afterAnswer(
        turn,
        container,
        result.tasks.find((task) => task.containerId === container.id),
      );
    advanceContainer(turn, container.id);
  }
  resumeExecs(turn, podSandboxId);
}

function afterMute(turn: Turn, container: Container, silences: number): void {
  if (silences < SILENCES_MAX) return;
  // Its process is dead and nobody will say how it ended: what is shown now must stay (C18). One that is to be killed is
  // killed without its shim, since nobody else can.
  const isKilled = rulesOf(turn.state) >= 3 && stopOf(container)?.killSignal === SIGKILL;
  if (isStartInDoubt(container) || isExitPending(container) || isKilled) loseContainer(turn, container.id, SHIM_MUTE);
}

/** Of one that was killed: the shim may have been asked too soon, since a clock that was set forward makes an exit overdue at once. */
function awaitExit(turn: Turn, container: Container): void {
  const stop = stopOf(container);
  const isKilled = stop?.kill === 'done' && stop.killSignal === SIGKILL;
  if (rulesOf(turn.state) >= 10 && isKilled)
    ensureTimer(turn, containerStream(container.id), 'exit', afterMs(turn, EXIT_OVERDUE_MS));
}

function afterAnswer(turn: Turn, container: Container, task: ObservedTask | undefined): void {
  // The shim was not asked for what was made after the question.
  if (task === undefined) return;
  // Nothing of the node has failed.
  const startFailedBy = rulesOf(turn.state) >= 12 ? 'Interrupted' : undefined;
  switch (task.status) {
    case 'running':
      if (isStartInDoubt(container))
        recordStart(turn, container.id, { pid: task.pid, startTicks: task.startTicks ?? '0' });
      awaitExit(turn, container);
      return endStaleExecs(turn, container);
    case 'stopped':
      if (isStartInDoubt(container) && task.neverBegan === true)
        return failStart(turn, container.id, NEVER_BEGAN, startFailedBy);
      if (isStartInDoubt(container))
        recordStart(turn, container.id, { pid: task.pid, startTicks: task.startTicks ?? '0' });
      if (task.exit !== undefined) recordExit(turn, container.id, task.exit);
      return;
    case 'created':
      // It has a process already, which is ended before anybody hears that the container is EXITED.
      if (isStartInDoubt(container)) loseContainer(turn, container.id, NEVER_STARTED, startFailedBy);
      return;
    case 'absent':
      if (isStartInDoubt(container)) return failStart(turn, container.id, NEVER_MADE, startFailedBy);
      return loseContainer(turn, container.id, 'its shim knows nothing of it');
  }
}
