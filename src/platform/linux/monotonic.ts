/** Milliseconds on the clock that all threads share: performance.now() begins anew in each. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
