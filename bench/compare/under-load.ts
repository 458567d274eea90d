/**
 * What a runtime does while much happens at once: how soon it tells of many exits, and how late scribe's event loop is while
 * pods come and go. Knows no goal.
 */
import type { ClientResult } from './client.ts';
import type { Figures } from './metrics.ts';
import { percentile } from './statistics.ts';

/** So many containers exit at once. */
export const EXITS = 200;

export const exitFigures = ({ samplesMs = {} }: ClientResult): Figures => ({
  exitToEvent: percentile(samplesMs['ExitToEvent'] ?? [], 99),
  exitsTold: percentile(samplesMs['GateToEvent'] ?? [], 100),
});

const MS_PER_S = 1000;

/** With --before, also as earlier commits tell it, by a label. */
const P999 = /^scribe_event_loop_delay(?:_p999_seconds|_seconds\{quantile="0\.999"\}) (\S+)$/m;

/** From what scribe tells Prometheus: 999 of 1,000 delays of its event loop since it was last asked were at most as long. */
export const loopFigures = (metricsText: string): Figures => {
  const [, seconds] = P999.exec(metricsText) ?? [];
  if (seconds === undefined) throw new Error('scribe does not tell how late its event loop was 999 of 1,000 times');
  return { loopDelay: Number(seconds) * MS_PER_S };
};
