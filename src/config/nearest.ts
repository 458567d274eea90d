/** Which known word somebody meant who misspelt it: keys of the configuration, options of commands. Pure. */

/** Levenshtein distance. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
};

const PREFIX_CHARS_MIN = 3;

/** Whoever typed only the beginning is as near as with one letter wrong. */
const distanceTo = (key: string, candidate: string): number =>
  key.length >= PREFIX_CHARS_MIN && candidate.startsWith(key) ? 1 : distance(key, candidate);

/** The candidate that was probably meant by a misspelt word; null when none is near. */
export const nearest = (key: string, candidates: readonly string[]): string | null => {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceTo(key.toLowerCase(), candidate) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [best] = ranked;
  // Further away than a third of its letters it is another word.
  return best !== undefined && best.distance <= Math.max(2, key.length / 3) ? best.candidate : null;
};
