/**
 * What an effect request is made as: whole, so that an adapter can perform it without knowing any state, or a failure
 * that the effect ends with at once. Each room makes those of its own objects.
 */
import type { Effect, EffectKind } from '../model/effects.ts';
import type { Intent } from '../model/records.ts';
import { type Refused, refused, type Result, succeeded } from '../model/result.ts';

export type EffectRequest = Result<Effect>;

export const perform = (effect: Effect): EffectRequest => succeeded(effect);

export const bug = (message: string): Refused => refused({ reason: 'Bug', message });

/** What is left in the default of a switch over intents: none of those that have to be handled there. */
export type NoneOf<K extends EffectKind> = Exclude<Intent, { readonly kind: K }>;

export const misplaced = (intent: Intent, where: string): Refused => bug(`${intent.kind} makes no sense for ${where}`);
