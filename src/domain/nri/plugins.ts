/** Which NRI plugins are there, and who of them wants to be asked what: folded from records. */
import type { NriNote, NriPlugin, PluginAnswer, PluginHook } from '../model/nri-plugins.ts';
import type { NriPluginInstance } from '../model/nri-views.ts';
import type { EffectOf } from '../model/effects.ts';
import type { PodLimits } from '../model/records.ts';
import type { NodeState } from '../model/state.ts';
import { fromCriResources } from './resources.ts';

type Present = Pick<NodeState, 'nriPlugins'>;

export const isPresent = ({ nriPlugins = [] }: Present, pluginId: string): boolean =>
  nriPlugins.some(({ id }) => id === pluginId);

/** In the order in which they are asked. */
export const pluginsFor = (present: Present, hook: PluginHook): readonly NriPlugin[] =>
  inOrder(present).filter(({ hooks }) => hooks.includes(hook));

const inOrder = ({ nriPlugins = [] }: Present): readonly NriPlugin[] =>
  nriPlugins.toSorted((a, b) => (a.index < b.index ? -1 : a.index > b.index ? 1 : 0));

/** Those of these ids that are still there, in their order. */
export const pluginsOf = ({ nriPlugins = [] }: Present, ids: readonly string[]): readonly NriPlugin[] =>
  ids.flatMap((id) => nriPlugins.find((plugin) => plugin.id === id) ?? []);

/** How plugins are called in words, and as owners of fields. */
export const pluginName = ({ index, name }: Pick<NriPlugin, 'index' | 'name'>): string => `${index}-${name}`;

/** "NN-name" by the id of one of its connections. */
export const pluginOfId = (id: string): string => id.replace(/@.*$/s, '');

/** Of "NN-name". */
export const bareName = (plugin: string): string => plugin.slice(plugin.indexOf('-') + 1);

/** Those who know what there is, without those who were asked in vain, in their order. */
export function pluginsThere(
  state: Pick<NodeState, 'nriPlugins' | 'effects'>,
  answers: readonly PluginAnswer[],
): readonly NriPluginInstance[] {
  const answered = new Map(answers.map(({ plugin, failure }) => [plugin, failure === undefined]));
  const comes = comingPlugins(state);
  return inOrder(state)
    .filter((plugin) => answered.get(pluginName(plugin)) ?? !comes.includes(plugin))
    .map(({ name, index }) => ({ name, index }));
}

/** Those who are being told what there is. */
export const comingPlugins = ({
  nriPlugins = [],
  effects,
}: Pick<NodeState, 'nriPlugins' | 'effects'>): readonly NriPlugin[] => {
  // Where there are none, nobody pays for a look at all that is under way.
  if (nriPlugins.length === 0) return [];
  const told = new Set(
    [...effects.values()].map(({ intent }) => (intent.kind === 'SynchronizePlugin' ? intent.plugin : null)),
  );
  return nriPlugins.filter(({ id }) => told.has(id));
};

export function evolvePlugins(state: NodeState, note: NriNote): void {
  if (note.type === 'nri.plugin.closed') return forgetPlugin(state, note.body.id);
  state.nriPlugins = [...(state.nriPlugins ?? []), note.body];
}

export function forgetPlugin(state: NodeState, pluginId: string): void {
  const left = (state.nriPlugins ?? []).filter(({ id }) => id !== pluginId);
  state.nriPlugins = left.length === 0 ? undefined : left;
}

/** A change of limits in NRI's words, for a request. */
export const changeTold = (change: PodLimits | undefined): Pick<EffectOf<'CallPlugins'>, 'change'> => {
  if (change === undefined) return {};
  const { resources, overhead } = change;
  return {
    change: {
      ...(resources === undefined ? {} : { resources: fromCriResources(resources) }),
      ...(overhead === undefined ? {} : { overhead: fromCriResources(overhead) }),
    },
  };
};
