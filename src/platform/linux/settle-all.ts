/** Work on several things at once that leaves nothing running behind when one of them fails. */

/** As Promise.all, but rejects only after every promise has settled: what is undone next meets nothing half done. */
export const settleAll = async (promises: readonly Promise<unknown>[]): Promise<void> => {
  await Promise.allSettled(promises);
  await Promise.all(promises);
};
