/** Long work side by side, but no more of it at once than there are processors: whoever comes later waits for a lane. */

/** Begins the work once there is a lane for it, in the order of asking. */
export type Lanes = <T>(work: () => Promise<T>) => Promise<T>;

export const createLanes = (count: number): Lanes => {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
};
