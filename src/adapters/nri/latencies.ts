/** How long the last answers of a plugin took. */

const KEPT = 256;

export interface LatencyFigures {
  readonly p50: bigint;
  readonly p99: bigint;
  readonly max: bigint;
}

export interface Latencies {
  readonly add: (durationNs: bigint) => void;
  /** null before the first. */
  readonly figures: () => LatencyFigures | null;
}

export const createLatencies = (): Latencies => {
  const last: bigint[] = [];
  let next = 0;
  return {
    add: (durationNs) => {
      last[next] = durationNs;
      next = (next + 1) % KEPT;
    },
    figures: () => {
      const sorted = last.toSorted((a, b) => (a < b ? -1 : 1));
      const at = (share: number): bigint => sorted[Math.ceil(share * sorted.length) - 1] ?? 0n;
      return sorted.length === 0 ? null : { p50: at(0.5), p99: at(0.99), max: at(1) };
    },
  };
};
