/**
 * Has NRI plugins asked: one effect for all who want this hook, so that nothing is asked for, and nothing recorded, where
 * nobody does.
 */
import type { HooksTold, NriProposal, PluginHook } from '../model/nri-plugins.ts';
import { pluginsFor } from '../nri/plugins.ts';
import type { PodLimits } from '../model/records.ts';
import type { OpenCall } from '../model/state.ts';
import { emit, request, type Turn } from './turn.ts';

/** False: nobody wants to be asked. */
export function askPlugins(turn: Turn, stream: string, hook: PluginHook): boolean {
  const plugins = pluginsFor(turn.state, hook).map(({ id }) => id);
  if (plugins.length === 0) return false;
  request(turn, stream, { kind: 'CallPlugins', hook, plugins });
  return true;
}

/** On behalf of a call that changes limits; what it says is done once they have answered. False: nobody wants to be asked. */
export function askAboutChange(
  turn: Turn,
  stream: string,
  hook: 'UpdateContainer' | 'UpdatePodSandbox',
  change: PodLimits,
  call: OpenCall,
): boolean {
  const plugins = pluginsFor(turn.state, hook).map(({ id }) => id);
  if (plugins.length === 0) return false;
  const effects = [{ kind: 'CallPlugins', hook, plugins, change }] as const;
  emit(turn, stream, { type: 'effects.requested', body: { effects } }, call.seq);
  return true;
}

/** Has validators judge what plugins want of a container. False: nobody wants to. */
export function askValidators(turn: Turn, stream: string, proposal: Omit<NriProposal, 'adjust'>): boolean {
  const hook = 'ValidateContainerAdjustment';
  const plugins = pluginsFor(turn.state, hook).map(({ id }) => id);
  if (plugins.length === 0) return false;
  request(turn, stream, { kind: 'CallPlugins', hook, plugins, proposal });
  return true;
}

/** Asks them what they are asked once about one object. True while they are being asked: whoever calls has to wait. */
export function askOnce(
  turn: Turn,
  stream: string,
  { nri }: { readonly nri?: { readonly hooks: HooksTold } },
  hook: PluginHook,
): boolean {
  const asked = nri?.hooks[hook];
  return asked === undefined ? askPlugins(turn, stream, hook) : asked === 'doing';
}
