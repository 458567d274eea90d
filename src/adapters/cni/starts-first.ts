/**
 * Lets pods that are being attached go before pods that are being detached (docs/decisions/starts-first.md): while an ADD
 * is under way, no more DELs are than there are places. Nobody waits for a DEL that hangs: it has its place for a moment only.
 * Knows neither pods nor plugins, and no order but that.
 */

export interface StartsFirst {
  /** Runs `work` at once. */
  readonly add: <T>(work: () => Promise<T>) => Promise<T>;
  /** Runs `work` when there is a place, first come first served, or when no ADD is under way. */
  readonly del: <T>(work: () => Promise<T>) => Promise<T>;
}

/** `placeMs`: how long a DEL has its place at most. It goes on without one. */
export const createStartsFirst = (places: number, placeMs: number): StartsFirst => {
  const waiting: (() => void)[] = [];
  let adds = 0;
  let taken = 0;

  const admit = (): void => {
    while (waiting.length > 0 && (adds === 0 || taken < places)) {
      taken += 1;
      waiting.shift()?.();
    }
  };

  const takePlace = async (): Promise<() => void> => {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      admit();
    });
    let isHeld = true;
    const leave = (): void => {
      clearTimeout(timer);
      if (!isHeld) return;
      isHeld = false;
      taken -= 1;
      admit();
    };
    const timer = setTimeout(leave, placeMs);
    return leave;
  };

  return {
    add: async (work) => {
      adds += 1;
      try {
        return await work();
      } finally {
        adds -= 1;
        admit();
      }
    },
    del: async (work) => {
      const leave = await takePlace();
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
};
