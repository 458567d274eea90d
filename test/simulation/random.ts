/** Seeded randomness: everything that varies in a history comes from here, so a seed replays it exactly. */

export interface Random {
  /** In [0, 1). */
  readonly next: () => number;
  /** An integer in [0, below). */
  readonly below: (below: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(items: readonly T[]) => T;
}

/** From and up to (not included): choices of a history, counted from its first. */
export type Stretch = readonly [from: number, to: number];

/** What is drawn where nothing is to happen: every chance is missed. */
const UNEVENTFUL = 0.999_999;

export interface CountedRandom extends Random {
  /** How many choices were made. */
  readonly count: () => number;
}

/** The choices of a seed, those in some stretches put back to what happens when nothing does. */
export function createChoices(seed: number, uneventful: readonly Stretch[]): CountedRandom {
  const drawn = createDraws(seed);
  let count = 0;
  const next = (): number => {
    const draw = drawn();
    const index = count++;
    return uneventful.some(([from, to]) => from <= index && index < to) ? UNEVENTFUL : draw;
  };
  return { ...randomFrom(next), count: () => count };
}

/** mulberry32: small, fast, and good enough to explore with. */
function createDraws(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = a;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function randomFrom(next: () => number): Random {
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('There is nothing to pick from.');
      return item;
    },
  };
}
