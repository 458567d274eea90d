/**
 * The fewest things with which a journal's turns are decided as they were: those that are wanted, their images, and, where
 * decisions about them depended on others (a name that was taken, an image that somebody else used), those others.
 */
import { AS_IT_WAS, type Known, retold } from './retell.ts';
import { shrunkTo, type Things, type Turn } from './turns.ts';

/** A try decides all again. */
const TRIES_MAX = 60;

export interface Shrunk {
  readonly turns: readonly Turn[];
  readonly things: ReadonlySet<string>;
  /** The input on which something else is decided, with everything kept, too; null: none. */
  readonly otherwise: number | null;
}

export const shrink = (turns: readonly Turn[], things: Things, wanted: ReadonlySet<string>, known: Known): Shrunk => {
  const least = new Set([...wanted, ...[...wanted].flatMap((thing) => [...things.imagesOf(thing)])]);
  const tried = (kept: ReadonlySet<string>): Shrunk => {
    const left = shrunkTo(turns, things, kept);
    return { turns: left, things: kept, otherwise: retold(left, { known, ...AS_IT_WAS }).otherwise };
  };
  const first = tried(least);
  if (first.otherwise === null) return first;
  let best = tried(new Set([...things.all, ...least]));
  if (best.otherwise !== null) return best;
  let others = [...best.things].filter((thing) => !least.has(thing));
  for (let size = Math.ceil(others.length / 2), tries = 0; size >= 1 && tries < TRIES_MAX; ) {
    let taken = false;
    for (let from = 0; from < others.length && tries < TRIES_MAX; tries += 1) {
      const rest = others.toSpliced(from, size);
      const without = tried(new Set([...least, ...rest]));
      if (without.otherwise === null) [best, others, taken] = [without, rest, true];
      else from += size;
    }
    if (!taken || size > others.length) size = Math.min(Math.floor(size / 2), others.length);
  }
  return best;
};
