/** By what the request of an effect is known again: its digest is recorded with the outcome, the request itself is not. */
import type { Effect } from '../domain/model/effects.ts';
import type { DigestOf } from './ports.ts';

/** 64 bits: it is to tell of mistakes, not to withstand anybody. */
const DIGEST_CHARACTERS = 16;

export const requestDigest = (effect: Effect, digestOf: DigestOf): string =>
  digestOf(JSON.stringify(effect)).slice(0, DIGEST_CHARACTERS);
