/** What plugins answered to one hook, as it counts for whoever asked: pure, so that a replay needs no plugin (C13). */
import type { NriResources } from '../model/nri.ts';
import type { NriUpdate } from '../model/nri-views.ts';
import type { Failure } from '../model/errors.ts';
import type { PluginAnswer, PluginHook } from '../model/nri-plugins.ts';
import type { Result } from '../model/result.ts';
import { type Merged, NOTHING_MERGED, withAdjustment } from './merge.ts';

/** The first who said no; null: nobody did. One that did not answer says nothing. `what` was asked about. */
export function vetoIn(answers: readonly PluginAnswer[], hook: PluginHook, what: string): Failure | null {
  for (const { plugin, failure } of answers)
    if (failure?.kind === 'refused')
      return {
        reason: 'PluginRefused',
        message: `NRI plugin "${plugin}" refused ${hook} of ${what}: ${failure.message}`,
      };
  return null;
}

/** What all of them change together. Refused with PluginConflict. */
export function mergedAnswers(answers: readonly PluginAnswer[]): Result<Merged> {
  let merged = NOTHING_MERGED;
  for (const { plugin, answer } of answers) {
    if (answer?.hook !== 'CreateContainer' || answer.adjust === undefined) continue;
    const next = withAdjustment(merged, plugin, answer.adjust);
    if (!next.ok) return next;
    merged = next.value;
  }
  return { ok: true, value: merged };
}

/** Limits that one container is to have, as all plugins together want them. */
export interface MergedUpdate {
  readonly containerId: string;
  readonly resources: NriResources;
  /** All who want it do without. */
  readonly ignoreFailure: boolean;
}

/**
 * By the rules of adjustments, container by container, in the order in which they were first named. Refused with
 * PluginConflict; what would be a conflict, and may fail, is left out.
 */
export function mergedUpdates(answers: readonly PluginAnswer[]): Result<readonly MergedUpdate[]> {
  const all = new Map<string, { readonly merged: Merged; readonly ignoreFailure: boolean }>();
  for (const { plugin, answer } of answers)
    for (const { containerId, resources = {}, ignoreFailure = false } of updatesIn(answer)) {
      const before = all.get(containerId);
      const next = withAdjustment(before?.merged ?? NOTHING_MERGED, plugin, { linux: { resources } });
      if (!next.ok && ignoreFailure) continue;
      if (!next.ok) return next;
      all.set(containerId, { merged: next.value, ignoreFailure: ignoreFailure && before?.ignoreFailure !== false });
    }
  const updates = [...all].map(([containerId, { merged, ignoreFailure }]) => ({
    containerId,
    resources: merged.adjust.linux?.resources ?? {},
    ignoreFailure,
  }));
  return { ok: true, value: updates };
}

const updatesIn = (answer: PluginAnswer['answer']): readonly NriUpdate[] =>
  answer !== undefined && 'updates' in answer ? (answer.updates ?? []) : [];
