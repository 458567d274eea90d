/**
 * What only some histories are about, besides what happens in all of them: drawn once, at their beginning, so that most
 * histories stay as plain as most days of a node are.
 */
import type { Random } from './random.ts';

const RATE = 0.1;
/** Of what leads to nothing else that is out of the way. */
const CHANGES_RATE = 0.3;

/** How many histories are about each. */
const RATES = {
  /** Deciders throw now and then. */
  turnsThrow: RATE,
  /** Shims live and answer nothing, for a while or until somebody mends them. */
  shimsAreMute: RATE,
  /** Effects hang: for as long as their adapters wait, or, where nothing bounds them, until somebody mends the node. */
  effectsHang: RATE,
  /** What fails goes on failing, and the daemon dies often. */
  failuresLast: RATE,
  /** Commands and sessions go on until their client leaves. */
  sessionsLast: RATE,
  /** Handlers, their runtimes and the sandbox image are others after a restart. */
  configurationChanges: CHANGES_RATE,
  /** A tag names another image at the next pull. */
  tagsMove: CHANGES_RATE,
  /** Layers are lost from the disk. */
  contentIsDamaged: CHANGES_RATE,
  /** The pid of a process that has ended is another's. */
  pidsAreReused: CHANGES_RATE,
  /** Others do whatever can be asked for to pods and containers of clients, and names are used again at once: where it is asked for. */
  clientsMeddle: 0,
  /** Some starts find that the journal is not all that was written: where it is asked for. */
  journalIsDoubted: 0,
  /** NRI plugins are asked, and come and go: where it is asked for. */
  pluginsAreThere: 0,
} as const;

export type Dimension = keyof typeof RATES;
export type Dimensions = Readonly<Record<Dimension, boolean>>;

export const DIMENSIONS = Object.keys(RATES) as readonly Dimension[];

/** `wanted`: what it is about in any case. */
export const drawDimensions = (random: Random, wanted: readonly Dimension[]): Dimensions =>
  Object.fromEntries(
    DIMENSIONS.map((dimension) => [
      dimension,
      (RATES[dimension] > 0 && random.chance(RATES[dimension])) || wanted.includes(dimension),
    ]),
  ) as Dimensions;
