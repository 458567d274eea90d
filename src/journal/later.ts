/** Putting work off, on either side of the journal: by the clock, or by whatever else a simulation goes by. */

/** Has something done once, so much later, unless what it returns is called before. */
export type Later = (delayMs: number, work: () => void) => () => void;

export const laterByTimer: Later = (delayMs, work) => {
  const timer = setTimeout(work, delayMs);
  return () => clearTimeout(timer);
};
