/**
 * How late the event loop is while there is work: whatever holds it up holds every call up. A timer measures it, and would wake
 * an idle daemon a hundred times a second, so it rests when nothing was heard of for a while.
 *
 *   work ──> a tick every TICK_MS ──nothing for QUIET_MS──> rest ──work──> …
 */
import { createHistogram } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

const TICK_MS = 10;
const QUIET_MS = 5_000;
/** By name, as prom-client's own nodejs_eventloop_lag_p99_seconds: Prometheus keeps the label "quantile" for summaries. */
const FIGURES = [
  { name: 'p50', percentile: 50, words: 'the median' },
  { name: 'p99', percentile: 99, words: '99 of 100 times at most' },
  { name: 'p999', percentile: 99.9, words: '999 of 1,000 times at most' },
  { name: 'max', percentile: 100, words: 'the worst' },
] as const;
const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;

/** Registers the gauges, and gives what is to be called when there is work. Keeps no process alive. */
export const eventLoopDelay = (registers: Registry[], now: () => number = () => performance.now()): (() => void) => {
  const delaysNs = createHistogram();
  let workedMs = 0;
  let isTicking = false;

  const tickAfter = (startMs: number): void => {
    setTimeout(() => {
      const nowMs = now();
      delaysNs.record(Math.max(1, Math.round((nowMs - startMs - TICK_MS) * NS_PER_MS)));
      isTicking = nowMs - workedMs < QUIET_MS;
      if (isTicking) tickAfter(nowMs);
    }, TICK_MS).unref();
  };

  const gauges = FIGURES.map(({ name, percentile, words }, index) => ({
    percentile,
    gauge: new Gauge({
      name: `scribe_event_loop_delay_${name}_seconds`,
      help: `How late the event loop was since the last scrape, while there was work: ${words}.`,
      registers,
      // All of one histogram: the first that is asked tells all, and begins a new one.
      ...(index === 0 ? { collect: () => collect() } : {}),
    }),
  }));

  const collect = (): void => {
    for (const { percentile, gauge } of gauges)
      gauge.set(delaysNs.count === 0 ? 0 : delaysNs.percentile(percentile) / NS_PER_S);
    delaysNs.reset();
  };

  return () => {
    workedMs = now();
    if (isTicking) return;
    isTicking = true;
    tickAfter(workedMs);
  };
};
