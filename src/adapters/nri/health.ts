/** How a plugin does: its requests counted, its answers measured, the deadlines that it missed. Judges nothing. */
import { createLatencies } from './latencies.ts';
import type { NriPluginStatus } from './plugins.ts';

export interface Health {
  readonly answered: (durationNs: bigint) => void;
  readonly failed: (missedDeadline: boolean, message: string) => void;
  readonly missesInARow: () => number;
  readonly figures: () => Pick<NriPluginStatus, 'requests' | 'failures' | 'missesInARow' | 'latencyNs' | 'lastFailure'>;
}

export const createHealth = (): Health => {
  const latencies = createLatencies();
  let requests = 0;
  let failures = 0;
  let missesInARow = 0;
  let lastFailure: string | null = null;
  return {
    answered: (durationNs) => {
      requests += 1;
      missesInARow = 0;
      latencies.add(durationNs);
    },
    failed: (missedDeadline, message) => {
      requests += 1;
      failures += 1;
      missesInARow = missedDeadline ? missesInARow + 1 : 0;
      lastFailure = message;
    },
    missesInARow: () => missesInARow,
    figures: () => ({ requests, failures, missesInARow, latencyNs: latencies.figures(), lastFailure }),
  };
};
