/** NRI plugins of the simulated node: they come and go, are asked everything, and allow, refuse or leave it open. */
import type { EffectKind, EffectOf } from '../../src/domain/model/effects.ts';
import type { NriHook } from '../../src/domain/model/nri-views.ts';
import type { NriPlugin, PluginAnswer, PluginHook } from '../../src/domain/model/nri-plugins.ts';
import type { Observation } from '../../src/domain/model/observation.ts';
import type { PerformEffects } from '../../src/engine/ports.ts';
import type { faultyPerformance, SimulatedEffectsOptions } from './faulty-performance.ts';
import type { History } from './history.ts';
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
const COMES_OR_GOES_RATE = 0.01;

export function pluginEffects(
  performing: ReturnType<typeof faultyPerformance>,
  { world, random, isCalm }: SimulatedEffectsOptions,
): Pick<PerformEffects, 'CallPlugins' | 'SynchronizePlugin'> {
  const said = (hook: PluginHook): Pick<PluginAnswer, 'answer' | 'failure'> => {
    if (!isCalm() && random.chance(UNANSWERED_RATE)) {
      // A validator has to answer.
      if (hook === 'ValidateContainerAdjustment') world.failures += 1;
      return { failure: { kind: 'unanswered', message: 'too late' } };
    }
    if (isCalm() || !HOOKS[hook] || !random.chance(REFUSES_RATE)) return { answer: { hook } };
    world.failures += 1;
    return { failure: { kind: 'refused', message: 'no' } };
  };
  const ask = performing('CallPlugins', 2, ({ hook, plugins }, half) => {
    half();
    return { answers: plugins.map(({ id }): PluginAnswer => ({ plugin: id, durationNs: '1', ...said(hook) })) };
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
    SynchronizePlugin: performing('SynchronizePlugin', 2, (_effect, half) => {
      half();
      return { answers: [] };
    }),
  };
}

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
export function createPlugins({ random, dimensions }: History, tell: (observation: Observation) => void): Plugins {
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
      if (!dimensions.pluginsAreThere || !random.chance(COMES_OR_GOES_RATE)) return;
      const index = random.below(NAMES.length);
      const name = NAMES[index] ?? NAMES[0];
      const id = present.get(name);
      if (id === undefined) come(name, index);
      else go(name, id);
    },
  };
}
