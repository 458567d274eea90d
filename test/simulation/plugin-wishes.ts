/**
 * What simulated NRI plugins want: changes of the container that is being made, of limits that CRI changes and of those of
 * others, and that others end. Two of them want the same thing now and then, and one wants what can't be.
 */
import type { NriResources } from '../../src/domain/model/nri.ts';
import type { NriAnswer, NriEviction, NriUpdate } from '../../src/domain/model/nri-views.ts';
import type { Random } from './random.ts';
import type { PluginsSaid } from './world.ts';

const ADJUSTS_RATE = 0.6;
const UPDATES_RATE = 0.4;
const EVICTS_RATE = 0.1;
const IMPOSSIBLE_RATE = 0.02;
const BOTH_RATE = 0.1;
const MAY_FAIL_RATE = 0.3;

export interface Wishes {
  /** `plugin`: its place among all; each of them has limits that it alone sets, but for now and then. */
  readonly answerOf: (hook: NriAnswer['hook'], plugin: number, subject: string) => NriAnswer;
  /** Of containers, unasked. */
  readonly unasked: () => readonly NriUpdate[];
  readonly knows: (containerId: string) => void;
}

/** `said`: is told what calls may fail of from now on. */
export function createWishes(random: Random, said: (what: PluginsSaid) => void): Wishes {
  const known: string[] = [];

  /** The first sets shares, the second processes; both shares is a conflict. */
  function limits(plugin: number): NriResources {
    const shares = { cpu: { shares: String(2 + random.below(1000)) } };
    if (plugin === 0) return shares;
    const pids = { pids: { limit: String(1 + random.below(100)) } };
    if (!random.chance(BOTH_RATE)) return pids;
    said('PluginConflict');
    return { ...shares, ...pids };
  }

  function updateOf(containerId: string, plugin: number): NriUpdate {
    const mayFail = random.chance(MAY_FAIL_RATE) ? ({ ignoreFailure: true } as const) : {};
    const resources = limits(plugin);
    if (!random.chance(IMPOSSIBLE_RATE)) return { containerId, resources, ...mayFail };
    said('PluginInvalid');
    // Where both want it, that they do is seen first.
    said('PluginConflict');
    return { containerId, resources: { ...resources, rdtClass: 'gold' }, ...mayFail };
  }

  const other = (): string | undefined => known[random.below(Math.max(1, known.length))];
  function others(plugin: number, subject: string): readonly NriUpdate[] {
    const containerId = random.chance(UPDATES_RATE) ? other() : undefined;
    return containerId === undefined || containerId === subject ? [] : [updateOf(containerId, plugin)];
  }
  function evictions(subject: string): readonly NriEviction[] {
    const containerId = random.chance(EVICTS_RATE) ? other() : undefined;
    if (containerId === undefined || containerId === subject) return [];
    // One that was not started yet is not started any more.
    said('PluginRefused');
    return [{ containerId, reason: 'in the way' }];
  }

  function answerOf(hook: NriAnswer['hook'], plugin: number, subject: string): NriAnswer {
    switch (hook) {
      case 'CreateContainer': {
        const adjust = random.chance(ADJUSTS_RATE) ? { linux: { resources: limits(plugin) } } : {};
        const wishes = { updates: others(plugin, subject), evictions: evictions(subject) };
        if (!random.chance(IMPOSSIBLE_RATE)) return { hook, adjust, ...wishes };
        said('PluginInvalid');
        return { hook, adjust, ...wishes, updates: [{ containerId: subject, resources: limits(plugin) }] };
      }
      case 'UpdateContainer': {
        const own = random.chance(ADJUSTS_RATE) ? [updateOf(subject, plugin)] : [];
        return { hook, updates: [...own, ...others(plugin, subject)], evictions: evictions(subject) };
      }
      case 'StopContainer':
      case 'Synchronize':
        return { hook, updates: others(plugin, subject) };
      default:
        return { hook };
    }
  }

  return {
    answerOf,
    unasked() {
      const containerId = other();
      return containerId === undefined ? [] : [updateOf(containerId, random.below(2))];
    },
    knows(containerId) {
      if (!known.includes(containerId)) known.push(containerId);
    },
  };
}
