/** How long the last answers of a plugin took. */

const KEPT = 256;

export interface LatencyFigures {
  /** All that there were, also those that are not kept. */
  readonly answers: number;
  readonly p50Ns: bigint;
  readonly p99Ns: bigint;
  readonly maxNs: bigint;
}

export interface Latencies {
  readonly add: (durationNs: bigint) => void;
  /** All 0 before the first. */
  readonly figures: () => LatencyFigures;
}

export const createLatencies = (): Latencies => {
  const last: bigint[] = [];
  let answers = 0;
  return {
    add: (durationNs) => {
      last[answers % KEPT] = durationNs;
      answers += 1;
    },
    figures: () => {
      const sorted = last.toSorted((a, b) => (a < b ? -1 : 1));
      const at = (share: number): bigint => sorted[Math.ceil(share * sorted.length) - 1] ?? 0n;
      return { answers, p50Ns: at(0.5), p99Ns: at(0.99), maxNs: at(1) };
    },
  };
};
