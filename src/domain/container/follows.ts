/** The order of a container's effects that are asked for while others of it are still under way. */
import type { EffectKind } from '../model/effects.ts';

/** Each begins once the other has succeeded, and fails with its words when that fails. */
const FOLLOWED: { readonly [K in EffectKind]?: EffectKind } = {
  PrepareContainer: 'InspectContainer',
  StartTask: 'CreateTask',
  CleanContainer: 'DeleteTask',
};

export const followedByContainer = (kind: EffectKind): EffectKind | undefined => FOLLOWED[kind];

/** What the effect that it follows finds out is part of its request, which can't be made before. */
export const isMadeOfFollowed = (kind: EffectKind): boolean => kind === 'PrepareContainer';
