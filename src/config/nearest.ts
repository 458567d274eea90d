/** Which known word somebody meant who misspelt it: keys of the configuration, options of commands, methods. Pure. */

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
const SHORT_CHARS_MAX = 3;

/** Whoever typed only the beginning is as near as with one letter wrong. */
const distanceTo = (typed: string, candidate: string): number =>
  typed.length >= PREFIX_CHARS_MIN && candidate.startsWith(typed) ? 1 : distance(typed, candidate);

/** Two wrong letters of three make another word; of a longer one a third may be wrong. */
const wrongCharsMax = (typed: string): number =>
  typed.length <= SHORT_CHARS_MAX ? 1 : Math.max(2, Math.floor(typed.length / 3));

/** The candidate that was probably meant by a misspelt word, whatever its case; null when none is near. */
export const nearest = (typed: string, candidates: readonly string[]): string | null => {
  const word = typed.toLowerCase();
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: distanceTo(word, candidate.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  const [best] = ranked;
  return best !== undefined && best.distance <= wrongCharsMax(word) ? best.candidate : null;
};
