/**
 * What NRI plugins are told and asked of a container, and how far that is. Each hook of its life is asked once:
 *
 *   CreateContainer ──> ValidateContainerAdjustment ──> PostCreateContainer ──> StartContainer ──> PostStartContainer
 *     ──> StopContainer ──> RemoveContainer
 *
 * Where nobody wants a hook, it is passed over without a record. What was announced is stopped and removed in the end,
 * also where its creation failed. What the answers lead to is after-hooks.ts.
 */
import { askOnce } from '../deciding/hooks.ts';
import type { Turn } from '../deciding/turn.ts';
import { isCreated } from '../model/container-state.ts';
import type { HookState, PluginHook } from '../model/nri-plugins.ts';
import { containerStream } from '../model/records.ts';
import type { Container, NodeState } from '../model/state.ts';
import { pluginsFor } from '../nri/plugins.ts';

const hookOf = ({ nri }: Container, hook: PluginHook): HookState | undefined => nri?.hooks[hook];

/** True while plugins are being asked, since now or before: whoever calls has to wait. */
export const askHookOnce = (turn: Turn, container: Container, hook: PluginHook): boolean =>
  askOnce(turn, containerStream(container.id), container, hook);

export const isBeingValidated = (container: Container): boolean =>
  hookOf(container, 'ValidateContainerAdjustment') === 'doing';

export const isBeingCreatedByPlugins = (container: Container): boolean =>
  hookOf(container, 'CreateContainer') === 'doing' || isBeingValidated(container);

/** Nobody can say what plugins made of it. */
export const hasLostPlugins = (container: Container): boolean =>
  hookOf(container, 'CreateContainer') === 'failed' || hookOf(container, 'ValidateContainerAdjustment') === 'failed';

/** Those who want to be asked before it is made have been. */
export const isAskedOfPlugins = (container: Container): boolean =>
  hookOf(container, 'CreateContainer') !== undefined || hookOf(container, 'ValidateContainerAdjustment') !== undefined;

/** Plugins were told of it, or would have been, had they wanted to. */
export const isAnnounced = (container: Container): boolean =>
  isCreated(container) || container.files !== 'none' || isAskedOfPlugins(container);

/** Plugins hear of its end before whoever asked for that does. */
export function isEndToBeTold(state: NodeState, container: Container): boolean {
  const { phase } = container;
  const asked = hookOf(container, 'StopContainer');
  if (asked !== undefined || phase.kind !== 'exited') return asked === 'doing';
  const hasTask = phase.taskLeft === 'done' || phase.taskLeft === 'failed';
  return hasTask && pluginsFor(state, 'StopContainer').length > 0;
}
