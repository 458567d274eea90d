/**
 * What only some histories are about, besides what happens in all of them: drawn once, at their beginning, so that most
 * histories stay as plain as most days of a node are.
 */
import type { Random } from './random.ts';

export interface Dimensions {
  /** Deciders throw now and then. */
  readonly turnsThrow: boolean;
  /** Shims live and answer nothing, for a while or until somebody mends them. */
  readonly shimsAreMute: boolean;
  /** Effects hang: for as long as their adapters wait, or, where nothing bounds them, until somebody mends the node. */
  readonly effectsHang: boolean;
  /** What fails goes on failing, and the daemon dies often. */
  readonly failuresLast: boolean;
  /** Commands and sessions go on until their client leaves. */
  readonly sessionsLast: boolean;
}

const RATE = 0.1;

/** `wanted`: one that it is about in any case. */
export const drawDimensions = (random: Random, wanted?: keyof Dimensions): Dimensions => ({
  turnsThrow: random.chance(RATE),
  shimsAreMute: random.chance(RATE),
  effectsHang: random.chance(RATE),
  failuresLast: random.chance(RATE),
  sessionsLast: random.chance(RATE),
  ...(wanted === undefined ? {} : { [wanted]: true }),
});
