/**
 * What an effect request is made as: whole, so that an adapter can perform it without knowing any state, or a failure
 * that the effect ends with at once. Each room makes those of its own objects.
 */
import type { Effect, EffectKind } from '../model/effects.ts';
import type { Failure } from '../model/errors.ts';
import type { Intent } from '../model/records.ts';

export type EffectRequest =
  | { readonly ok: true; readonly effect: Effect }
  | { readonly ok: false; readonly failure: Failure };

export const perform = (effect: Effect): EffectRequest => ({ ok: true, effect });

export type Refusal = Extract<EffectRequest, { readonly ok: false }>;

export const bug = (message: string): Refusal => ({ ok: false, failure: { reason: 'Bug', message } });

/** What is left in the default of a switch over intents: none of those that have to be handled there. */
export type NoneOf<K extends EffectKind> = Exclude<Intent, { readonly kind: K }>;

export const misplaced = (intent: Intent, where: string): Refusal => bug(`${intent.kind} makes no sense for ${where}`);
