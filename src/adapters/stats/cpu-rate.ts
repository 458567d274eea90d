/**
 * CPU use of late from samples of CPU time used so far. Pure but for the samples it holds.
 */

const NS_PER_SECOND = 1_000_000_000n;
/** Samples closer together than this say more about the scheduler than about the container. */
const SPAN_MIN_NS = NS_PER_SECOND;
/** With nothing better, at least this. */
export const SPAN_FIRST_MS = 100;
const SPAN_FIRST_NS = BigInt(SPAN_FIRST_MS) * 1_000_000n;

interface Sample {
  readonly atNs: bigint;
  readonly cpuNs: bigint;
}

export interface CpuRate {
  /** Takes in a sample; returns CPU ns used per second since one a second or more ago, undefined as long as unknown. */
  readonly add: (atNs: bigint, cpuNs: bigint) => bigint | undefined;
}

const rateBetween = (from: Sample, to: Sample): bigint => {
  const used = to.cpuNs - from.cpuNs;
  return used <= 0n ? 0n : (used * NS_PER_SECOND) / (to.atNs - from.atNs);
};

/** Holds two samples at most a second apart from what they are compared with; times are of one monotonic clock. */
export const createCpuRate = (): CpuRate => {
  let base: Sample | null = null;
  let latest: Sample | null = null;
  return {
    add: (atNs, cpuNs) => {
      const sample = { atNs, cpuNs };
      if (latest === null) {
        latest = sample;
        return undefined;
      }
      if (atNs - latest.atNs >= SPAN_MIN_NS) {
        base = latest;
        latest = sample;
      }
      const from = base ?? latest;
      return atNs - from.atNs < SPAN_FIRST_NS ? undefined : rateBetween(from, sample);
    },
  };
};
