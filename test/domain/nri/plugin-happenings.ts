/** What NRI plugins do, in the words of specifications. */
import assert from 'node:assert/strict';
import { effectRequest } from '../../../src/domain/turn/effect-requests.ts';
import type { EffectKind, EffectOf } from '../../../src/domain/model/effects.ts';
import type { NodeState } from '../../../src/domain/model/state.ts';
import type { NriAnswer } from '../../../src/domain/model/nri-views.ts';
import type { NriPlugin, PluginAnswer, PluginHook } from '../../../src/domain/model/nri-plugins.ts';
import { NODE_STREAM } from '../../../src/domain/model/records.ts';
import type { Happening } from '../given.ts';
import { end } from '../happenings.ts';

export const plugin = (index: string, name: string, ...hooks: readonly PluginHook[]): NriPlugin => ({
  id: `${index}-${name}`,
  index,
  name,
  hooks,
});

export const registers =
  (body: NriPlugin): Happening =>
  (tell) =>
    tell({ type: 'nri.plugin.registered', body, stream: NODE_STREAM, call: null });

export const closes =
  (id: string): Happening =>
  (tell) =>
    tell({ type: 'nri.plugin.closed', body: { id, reason: 'it ended' }, stream: NODE_STREAM, call: null });

export const answers = (name: string, answer: NriAnswer): PluginAnswer => ({ plugin: name, durationNs: '1', answer });

export const says = (name: string, kind: 'refused' | 'unanswered' | 'closed', message = 'no'): PluginAnswer => ({
  plugin: name,
  durationNs: '1',
  failure: { kind, message },
});

/** The plugins that are being asked this answer. */
export const answered =
  (hook: PluginHook, ...said: readonly PluginAnswer[]): Happening =>
  (tell, { effects }) => {
    const open = [...effects.values()].find(({ intent }) => intent.kind === 'CallPlugins' && intent.hook === hook);
    if (open === undefined) throw new Error(`Nobody is asked ${hook}.`);
    end(tell, open, { result: { answers: said } });
  };

/** The whole request of the first effect of this kind that is under way. */
export const requested = <K extends EffectKind>(state: NodeState, kind: K): EffectOf<K> => {
  const open = [...state.effects.values()].find(({ intent }) => intent.kind === kind);
  assert.ok(open !== undefined, `no ${kind} is under way`);
  const made = effectRequest(state, open);
  assert.ok(made.ok);
  return made.value as EffectOf<K>;
};
