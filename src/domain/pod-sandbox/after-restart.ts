/** What the daemon's end, or the node's, makes of a PodSandbox: nobody knows how far things are, or is in touch with its shim. */
import { interrupted } from '../deciding/step-states.ts';
import type { PodSandbox, ShimContact } from '../model/state.ts';
import { restartedHooks } from '../nri/told.ts';
import { isShimToGoOn, mapSteps } from './evolve.ts';

/** `dead`: what held it was found dead, or its namespaces are not pinned any more. */
export function restartedSandbox(sandbox: PodSandbox, rules: number, rebooted: boolean, dead: boolean): PodSandbox {
  // Whatever of it was made: who asked for it was not answered, and after a reboot nothing of it is there.
  const isCutOff = sandbox.phase === 'creating' && rules >= 9;
  return {
    ...restartedHooks(sandbox),
    steps: mapSteps(sandbox.steps, interrupted),
    kill: 'none',
    shimContact: contactAfterRestart(sandbox, rebooted),
    phase: sandbox.phase === 'ready' && (rebooted || dead) ? 'notReady' : sandbox.phase,
    ...(isCutOff ? { isCutOff } : {}),
  };
}

function contactAfterRestart(sandbox: PodSandbox, rebooted: boolean): ShimContact {
  if (sandbox.shim === null) return 'none';
  if (rebooted) return 'gone';
  return isShimToGoOn(sandbox) ? 'unknown' : 'mute';
}
