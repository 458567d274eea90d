/** How far the hooks are that plugins are asked about one object: what records make of it. Must decide nothing. */
import type { Failure } from '../model/errors.ts';
import type { PodSandbox } from '../model/state.ts';
import type { HookState, HooksTold, PluginHook } from '../model/nri-plugins.ts';

type WithNri = { readonly nri?: { readonly hooks: HooksTold } };

const DECISIVE: ReadonlySet<PluginHook> = new Set(['RunPodSandbox', 'CreateContainer', 'ValidateContainerAdjustment']);

/** Without what plugins said to it nothing can go on; of all other hooks they count as told. */
export const isDecisive = (hook: PluginHook): boolean => DECISIVE.has(hook);

const toldOf = (hook: PluginHook): HookState => (isDecisive(hook) ? 'failed' : 'done');

export const withHook = <T extends WithNri>(object: T, hook: PluginHook, to: HookState): T => ({
  ...object,
  nri: { ...object.nri, hooks: { ...object.nri?.hooks, [hook]: to } },
});

/** What was asked is over; `failure`: nobody knows what was said. */
export const withAnswers = <T extends WithNri>(object: T, hook: PluginHook, failure: Failure | undefined): T =>
  withHook(object, hook, failure === undefined ? 'done' : toldOf(hook));

/** The daemon ended in the middle of it. */
export function restartedHooks<T extends WithNri>(object: T): T {
  if (object.nri === undefined) return object;
  const told = ([hook, to]: [string, HookState]) => [hook, to === 'doing' ? toldOf(hook as PluginHook) : to] as const;
  return { ...object, nri: { ...object.nri, hooks: Object.fromEntries(Object.entries(object.nri.hooks).map(told)) } };
}

/**
 * Plugins were told of this pod, or would have been, had they wanted to. One that nobody asked for again (C5) was READY;
 * any other that is undone never was.
 */
export const isPodAnnounced = (sandbox: Pick<PodSandbox, 'goal' | 'nri' | 'failure' | 'cause'>): boolean =>
  sandbox.goal !== 'undo' || sandbox.nri?.hooks.RunPodSandbox !== undefined || isUnclaimed(sandbox);

/** Older journals do not say the cause. */
const isUnclaimed = ({ cause, failure }: Pick<PodSandbox, 'cause' | 'failure'>): boolean =>
  cause === undefined ? failure?.reason === 'Cancelled' : cause === 'unclaimed';
