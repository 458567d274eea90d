/**
 * Has what NRI plugins want of a container judged before it is made: validators are asked once, all at once. Must not give
 * the creation up itself.
 */
import { askValidators } from '../deciding/hooks.ts';
import type { Turn } from '../deciding/turn.ts';
import type { PluginAnswer } from '../model/nri-plugins.ts';
import { containerStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import type { Container } from '../model/state.ts';
import { pluginsThere } from '../nri/plugins.ts';
import type { MergedUpdates } from '../nri/updates.ts';

/** What plugins said to the creation. */
export interface SaidToCreation {
  readonly answers: readonly PluginAnswer[];
  /** What they want of other containers. */
  readonly others: MergedUpdates;
}

export const NOTHING_SAID: SaidToCreation = { answers: [], others: { updates: [], owners: {} } };

/** False: nobody wants to judge it. */
export function askForValidation(turn: Turn, { id }: Container, { answers, others }: SaidToCreation): boolean {
  if (rulesOf(turn.state) < 5) return false;
  const proposal = { ...others, plugins: pluginsThere(turn.state, answers) };
  return askValidators(turn, containerStream(id), proposal);
}
