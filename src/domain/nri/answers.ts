/** What plugins answered to one hook, as it counts for whoever asked: pure, so that a replay needs no plugin (C13). */
import type { Failure } from '../model/errors.ts';
import type { PluginAnswer, PluginFailure, PluginHook } from '../model/nri-plugins.ts';
import { type Result, succeeded } from '../model/result.ts';
import type { PluginUpdates } from './updates.ts';
import { type Merged, NOTHING_MERGED, withAdjustment } from './merge.ts';

/** One that did not answer says nothing, unless it has to. */
export const isVeto = ({ kind, isRequired }: PluginFailure): boolean => kind === 'refused' || isRequired === true;

/** The first who said no; null: nobody did. `what` was asked about. */
export function vetoIn(answers: readonly PluginAnswer[], hook: PluginHook, what: string): Failure | null {
  for (const { plugin, failure } of answers)
    if (failure !== undefined && isVeto(failure))
      return failure.kind === 'refused'
        ? { reason: 'PluginRefused', message: `NRI plugin "${plugin}" refused ${hook} of ${what}: ${failure.message}` }
        : { reason: 'PluginMissing', message: silenceOf(plugin, hook, what, failure) };
  return null;
}

const silenceOf = (plugin: string, hook: PluginHook, what: string, { message }: PluginFailure): string =>
  `NRI plugin "${plugin}" has to answer ${hook} of ${what}, and did not (${message}): look after it, raise request_timeout or set failure_policy = "continue" in [nri.plugins."${plugin}"], or stop it, and try again.`;

/** The first validator that does not agree. One that gives no answer does not: what nobody judged is not made. */
export function rejectionIn(answers: readonly PluginAnswer[], what: string): Failure | null {
  for (const { plugin, answer, failure } of answers) {
    if (failure !== undefined && failure.kind !== 'refused')
      return {
        reason: 'PluginMissing',
        message: `NRI plugin "${plugin}" has to agree to ${what}, and gave no answer (${failure.message}): look after it, or stop it, and try again.`,
      };
    if (answer?.hook === 'ValidateContainerAdjustment' && answer.rejected !== undefined)
      return { reason: 'PluginRefused', message: `NRI plugin "${plugin}" rejects ${what}: ${answer.rejected.reason}` };
  }
  return vetoIn(answers, 'ValidateContainerAdjustment', what);
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
  return succeeded(merged);
}

/** What plugins want of limits, of whichever container. */
export const updatesIn = (answers: readonly PluginAnswer[]): readonly PluginUpdates[] =>
  answers.flatMap(({ plugin, answer }) =>
    answer !== undefined && 'updates' in answer && answer.updates !== undefined
      ? [{ plugin, updates: answer.updates }]
      : [],
  );
