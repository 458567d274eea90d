/**
 * For a while after the daemon has started, what is created waits for required NRI plugins that are missing; and at any
 * time for those that are just being told what there is. Nothing is looked at again and again: whoever waits is woken.
 */
import { NODE_STREAM } from '../model/records.ts';
import type { NodeState } from '../model/state.ts';
import { comingPlugins, pluginsThere } from '../nri/plugins.ts';
import { missingOf, requiredPlugins } from '../nri/required.ts';
import { hasTimer } from './open-effects.ts';
import { afterMs, setTimer, type Turn } from './turn.ts';

const PURPOSE = 'plugins';

/** From the start of the daemon on. */
export function letCreationsWait(turn: Turn): void {
  const { startupWaitMs = 0 } = turn.state.facts?.nri ?? {};
  if (startupWaitMs > 0) setTimer(turn, NODE_STREAM, PURPOSE, afterMs(turn, startupWaitMs));
}

/** `container`: its name; null: the pod itself is created. What cannot be read is refused elsewhere. */
export function awaitsPlugins(
  state: NodeState,
  annotations: Readonly<Record<string, string>> | undefined,
  container: string | null,
): boolean {
  const { nri } = state.facts ?? {};
  if (nri === undefined) return false;
  const required = requiredPlugins(nri.validator, annotations === undefined ? {} : { annotations }, container);
  if (!required.ok || required.value.length === 0) return false;
  const missing = missingOf(required.value, pluginsThere(state, []));
  if (missing.length === 0) return false;
  return hasTimer(state, NODE_STREAM, PURPOSE) || missingOf(missing, comingPlugins(state)).length === 0;
}
