/** How a plugin does: its requests counted, its answers measured by hook, the deadlines that it missed. Judges nothing. */
import { createLatencies, type Latencies } from './latencies.ts';
import type { NriAsked, NriPluginStatus } from './plugins.ts';

export type HealthFigures = Pick<
  NriPluginStatus,
  'requests' | 'failures' | 'deadlinesMissed' | 'missesInARow' | 'latencies' | 'lastFailure'
>;

export const NO_FIGURES: HealthFigures = {
  requests: 0,
  failures: 0,
  deadlinesMissed: 0,
  missesInARow: 0,
  latencies: [],
  lastFailure: null,
};

export interface Health {
  readonly answered: (asked: NriAsked, durationNs: bigint) => void;
  readonly failed: (missedDeadline: boolean, message: string) => void;
  readonly missesInARow: () => number;
  readonly figures: () => HealthFigures;
}

export const createHealth = (): Health => {
  const latencies = new Map<NriAsked, Latencies>();
  let counted: Omit<HealthFigures, 'latencies'> = NO_FIGURES;
  return {
    answered: (asked, durationNs) => {
      counted = { ...counted, requests: counted.requests + 1, missesInARow: 0 };
      const known = latencies.get(asked) ?? createLatencies();
      latencies.set(asked, known);
      known.add(durationNs);
    },
    failed: (missedDeadline, message) => {
      const { requests, failures, deadlinesMissed, missesInARow } = counted;
      counted = {
        requests: requests + 1,
        failures: failures + 1,
        deadlinesMissed: deadlinesMissed + (missedDeadline ? 1 : 0),
        missesInARow: missedDeadline ? missesInARow + 1 : 0,
        lastFailure: message,
      };
    },
    missesInARow: () => counted.missesInARow,
    figures: () => ({
      ...counted,
      latencies: [...latencies].map(([asked, known]) => ({ asked, ...known.figures() })),
    }),
  };
};
