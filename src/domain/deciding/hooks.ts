/**
 * Has NRI plugins asked: one effect for all who want this hook, so that nothing is asked for, and nothing recorded, where
 * nobody does.
 */
import type { PluginHook } from '../model/nri-plugins.ts';
import { pluginsFor } from '../nri/plugins.ts';
import { request, type Turn } from './turn.ts';

/** False: nobody wants to be asked. */
export function askPlugins(turn: Turn, stream: string, hook: PluginHook): boolean {
  const plugins = pluginsFor(turn.state, hook).map(({ id }) => id);
  if (plugins.length === 0) return false;
  request(turn, stream, { kind: 'CallPlugins', hook, plugins });
  return true;
}
