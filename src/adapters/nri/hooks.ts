/** The hooks of the protocol: their methods, their bits in what a plugin subscribes to, and how older plugins hear of them. */
import type { MethodDefinition } from '../../platform/ttrpc/method.ts';
import { Event, PluginDefinition, StateChangeEvent } from '../../wire/nri/api.ts';
import type { AnswerOf, NriHook, RequestOf } from './plugins.ts';

/** Of the contract in proto/nri, which plugins are told. */
export const NRI_VERSION = 'v0.12.5';

const EVENTS: Readonly<Record<NriHook, Event>> = {
  RunPodSandbox: Event.RUN_POD_SANDBOX,
  StopPodSandbox: Event.STOP_POD_SANDBOX,
  RemovePodSandbox: Event.REMOVE_POD_SANDBOX,
  CreateContainer: Event.CREATE_CONTAINER,
  PostCreateContainer: Event.POST_CREATE_CONTAINER,
  StartContainer: Event.START_CONTAINER,
  PostStartContainer: Event.POST_START_CONTAINER,
  UpdateContainer: Event.UPDATE_CONTAINER,
  PostUpdateContainer: Event.POST_UPDATE_CONTAINER,
  StopContainer: Event.STOP_CONTAINER,
  RemoveContainer: Event.REMOVE_CONTAINER,
  UpdatePodSandbox: Event.UPDATE_POD_SANDBOX,
  PostUpdatePodSandbox: Event.POST_UPDATE_POD_SANDBOX,
  ValidateContainerAdjustment: Event.VALIDATE_CONTAINER_ADJUSTMENT,
};
const HOOKS = Object.keys(EVENTS) as NriHook[];

const bitOf = (hook: NriHook): number => 1 << (EVENTS[hook] - 1);
const ALL_BITS = HOOKS.reduce((mask, hook) => mask | bitOf(hook), 0);

/** 0 stands for all; null: a bit that nobody knows is set. */
export const hooksOfMask = (mask: number): readonly NriHook[] | null => {
  if ((mask & ~ALL_BITS) !== 0) return null;
  return mask === 0 ? HOOKS : HOOKS.filter((hook) => (mask & bitOf(hook)) !== 0);
};

const METHODS: ReadonlyMap<string, unknown> = new Map(
  Object.values(PluginDefinition.methods).map((method) => [method.name, method]),
);

export const methodOf = <H extends NriHook>(hook: H): MethodDefinition<RequestOf<H>, AnswerOf<H>> =>
  METHODS.get(hook) as MethodDefinition<RequestOf<H>, AnswerOf<H>>;

/** Those that were one RPC, StateChange, before they had RPCs of their own. */
const FORMER_STATE_CHANGES: ReadonlySet<NriHook> = new Set([
  'RunPodSandbox',
  'StopPodSandbox',
  'RemovePodSandbox',
  'PostUpdatePodSandbox',
  'PostCreateContainer',
  'StartContainer',
  'PostStartContainer',
  'PostUpdateContainer',
  'RemoveContainer',
]);

export const wasStateChange = (hook: NriHook): boolean => FORMER_STATE_CHANGES.has(hook);

/** The same for a plugin that lacks the RPC, where there was this before it. */
export const stateChangeOf = <H extends NriHook>(hook: H, request: RequestOf<H>): StateChangeEvent =>
  StateChangeEvent.fromPartial({ ...(request as Partial<StateChangeEvent>), event: EVENTS[hook] });
