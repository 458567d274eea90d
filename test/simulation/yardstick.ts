/**
 * A piece of work that has nothing to do with scribe and never changes, so that figures of different machines, or of the
 * same one under different loads, can be held against each other: text is written and read, objects are copied, numbers mixed.
 */
const ROUNDS = 5000;
const MIXED = 200;
const TRIES = 5;

function work(): number {
  let sum = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const text = JSON.stringify({ round, name: 'x'.repeat(20), list: [1, 2, 3], inner: { round } });
    const copy = { ...(JSON.parse(text) as { readonly round: number }), more: 1 };
    sum = (sum * 31 + copy.round) | 0;
    for (let step = 0; step < MIXED; step += 1) sum = Math.imul(sum ^ step, 16_777_619);
  }
  return sum;
}

/** Processor time of this thread so far, in ms. */
export const threadMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** Processor time of this thread that it takes, the least of a few tries, in ms. */
export function yardstickMs(): number {
  let least = Number.POSITIVE_INFINITY;
  for (let left = TRIES; left > 0; left -= 1) {
    const before = threadMs();
    work();
    least = Math.min(least, threadMs() - before);
  }
  return least;
}
