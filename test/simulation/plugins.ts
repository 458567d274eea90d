/**
 * NRI plugins of the simulated node: they come and go, are asked everything, and allow, change, refuse or leave it open, end
 * in the middle, and take their time.
 */
import type { EffectKind, EffectOf } from '../../src/domain/model/effects.ts';
import type { NriHook } from '../../src/domain/model/nri-views.ts';
import type { NriPlugin, PluginAnswer, PluginHook } from '../../src/domain/model/nri-plugins.ts';
import type { Observation } from '../../src/domain/model/observation.ts';
import type { PerformEffects } from '../../src/engine/ports.ts';
import type { faultyPerformance, SimulatedEffectsOptions } from './faulty-performance.ts';
import type { History } from './history.ts';
import { createWishes } from './plugin-wishes.ts';
import { Violation } from './violation.ts';

/** Whether a plugin may refuse what it is asked about. */
const HOOKS: Readonly<Record<NriHook, boolean>> = {
  Synchronize: false,
  RunPodSandbox: true,
  StopPodSandbox: false,
  RemovePodSandbox: false,
  UpdatePodSandbox: true,
  PostUpdatePodSandbox: false,
  CreateContainer: true,
  ValidateContainerAdjustment: true,
  PostCreateContainer: false,
  StartContainer: true,
  PostStartContainer: false,
  UpdateContainer: true,
  PostUpdateContainer: false,
  StopContainer: false,
  RemoveContainer: false,
};

const NAMES = ['first', 'second'] as const;
const REFUSES_RATE = 0.03;
const UNANSWERED_RATE = 0.03;
const ENDS_RATE = 0.01;
const COMES_OR_GOES_RATE = 0.01;
const UNASKED_RATE = 0.02;

export function pluginEffects(
  performing: ReturnType<typeof faultyPerformance>,
  { world, random, isCalm }: SimulatedEffectsOptions,
): Pick<PerformEffects, 'CallPlugins' | 'SynchronizePlugin'> {
  const wishes = createWishes(random, (what) => void world.pluginsSaid.add(what));
  /** A validator has to answer: its silence is a no. */
  const silent = (hook: NriHook, kind: 'unanswered' | 'closed'): Pick<PluginAnswer, 'failure'> => {
    if (hook === 'ValidateContainerAdjustment') {
      world.failures += 1;
      world.pluginsSaid.add('PluginRefused');
    }
    return { failure: { kind, message: kind === 'closed' ? 'it ended' : 'too late' } };
  };
  const said = (hook: NriHook, id: string, subject: string): Pick<PluginAnswer, 'answer' | 'failure'> => {
    if (isCalm()) return { answer: { hook } };
    if (random.chance(UNANSWERED_RATE)) return silent(hook, 'unanswered');
    if (random.chance(ENDS_RATE)) {
      world.endingPlugins.add(id);
      return silent(hook, 'closed');
    }
    if (!HOOKS[hook] || !random.chance(REFUSES_RATE)) return { answer: wishes.answerOf(hook, placeOf(id), subject) };
    world.failures += 1;
    world.pluginsSaid.add('PluginRefused');
    return { failure: { kind: 'refused', message: 'no' } };
  };
  const ask = performing('CallPlugins', 2, ({ hook, plugins, pod, container }, half) => {
    half();
    const subject = (container ?? pod).id;
    if (container !== undefined) wishes.knows(subject);
    return { answers: plugins.map(({ id }) => ({ plugin: id, durationNs: '1', ...said(hook, id, subject) })) };
  });
  const asking = new Map<string, Promise<unknown>>();
  return {
    // What is asked about one object is asked in the order in which it was requested.
    CallPlugins(effect) {
      const { id } = effect.container ?? effect.pod;
      const answers = (asking.get(id) ?? Promise.resolve()).then(() => ask(effect));
      asking.set(
        id,
        answers.catch(() => undefined),
      );
      return answers;
    },
    SynchronizePlugin: performing('SynchronizePlugin', 2, ({ plugin: { id }, containers }, half) => {
      for (const container of containers) wishes.knows(container.id);
      half();
      if (isCalm()) return { answers: [] };
      return { answers: [{ plugin: id, durationNs: '1', answer: wishes.answerOf('Synchronize', placeOf(id), '') }] };
    }),
  };
}

/** Ids begin with names. */
const placeOf = (id: string): number => NAMES.findIndex((name) => id.startsWith(name));

const LIVES: readonly (readonly NriHook[])[] = [
  ['RunPodSandbox', 'StopPodSandbox', 'RemovePodSandbox'],
  [
    'CreateContainer',
    'ValidateContainerAdjustment',
    'PostCreateContainer',
    'StartContainer',
    'PostStartContainer',
    'StopContainer',
    'RemoveContainer',
  ],
];

/** Of one life of the daemon: each hook of a pod's or container's life is asked once, and none after a later one. */
export function createOrderCheck(): (effect: EffectOf<EffectKind>) => void {
  const reached = new Map<string, number>();
  return (effect) => {
    if (effect.kind !== 'CallPlugins') return;
    const { hook, pod, container } = effect;
    const { id } = container ?? pod;
    const life = LIVES.find((hooks) => hooks.includes(hook)) ?? [];
    const last = reached.get(id) ?? -1;
    const now = life.indexOf(hook);
    if (now >= 0 && now <= last) throw new Violation(`Plugins are asked ${hook} of ${id} after ${life[last]}.`);
    if (now >= 0) reached.set(id, now);
  };
}

export interface Plugins {
  /** Those who are to be there when a daemon has started register. */
  readonly register: () => void;
  /** Once a step: one registers, or goes. */
  readonly comeOrGo: () => void;
}

/** `tell`: the living daemon, of those that it knows. */
export function createPlugins(history: History, tell: (observation: Observation) => void): Plugins {
  const { random, dimensions, world } = history;
  const wishes = createWishes(random, (what) => void world.pluginsSaid.add(what));
  const present = new Map<string, string>();
  let registrations = 0;

  function come(name: string, index: number): void {
    const id = `${name}-${++registrations}`;
    present.set(name, id);
    const hooks = (Object.keys(HOOKS) as NriHook[]).filter((hook): hook is PluginHook => hook !== 'Synchronize');
    const body: NriPlugin = { id, name, index: `${index}0`, hooks };
    tell({ kind: 'NriNoted', note: { type: 'nri.plugin.registered', body } });
  }

  function go(name: string, id: string): void {
    present.delete(name);
    tell({ kind: 'NriNoted', note: { type: 'nri.plugin.closed', body: { id, reason: 'it ended' } } });
  }

  return {
    register() {
      if (!dimensions.pluginsAreThere) return;
      present.clear();
      for (const [index, name] of NAMES.entries()) if (random.chance(0.8)) come(name, index);
    },
    comeOrGo() {
      if (!dimensions.pluginsAreThere) return;
      for (const [name, id] of present) if (world.endingPlugins.delete(id)) go(name, id);
      if (!history.calm && random.chance(UNASKED_RATE)) {
        for (const id of history.daemon?.view.state.containers.keys() ?? []) wishes.knows(id);
        history.daemon?.nri?.take(wishes.unasked());
      }
      if (!random.chance(COMES_OR_GOES_RATE)) return;
      const index = random.below(NAMES.length);
      const name = NAMES[index] ?? NAMES[0];
      const id = present.get(name);
      if (id === undefined) come(name, index);
      else go(name, id);
    },
  };
}
