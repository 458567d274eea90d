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
  /** Handlers, their runtimes and the sandbox image are others after a restart. */
  readonly configurationChanges: boolean;
  /** A tag names another image at the next pull. */
  readonly tagsMove: boolean;
  /** Layers are lost from the disk. */
  readonly contentIsDamaged: boolean;
  /** The pid of a process that has ended is another's. */
  readonly pidsAreReused: boolean;
}

const RATE = 0.1;
/** Of what leads to nothing else that is out of the way. */
const CHANGES_RATE = 0.3;

/** `wanted`: one that it is about in any case. */
export const drawDimensions = (random: Random, wanted?: keyof Dimensions): Dimensions => ({
  turnsThrow: random.chance(RATE),
  shimsAreMute: random.chance(RATE),
  effectsHang: random.chance(RATE),
  failuresLast: random.chance(RATE),
  sessionsLast: random.chance(RATE),
  configurationChanges: random.chance(CHANGES_RATE),
  tagsMove: random.chance(CHANGES_RATE),
  contentIsDamaged: random.chance(CHANGES_RATE),
  pidsAreReused: random.chance(CHANGES_RATE),
  ...(wanted === undefined ? {} : { [wanted]: true }),
});
