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
const QUANTILES = [0.5, 0.99, 0.999, 1];
const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;

/** Registers the gauge, and gives what is to be called when there is work. Keeps no process alive. */
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

  const made: Gauge<'quantile'> = new Gauge({
    name: 'scribe_event_loop_delay_seconds',
    help: 'How late the event loop was since the last scrape, while there was work: median, 99 of 100, 999 of 1,000, worst.',
    labelNames: ['quantile'],
    registers,
    collect: () => {
      for (const quantile of QUANTILES)
        made.set({ quantile }, delaysNs.count === 0 ? 0 : delaysNs.percentile(quantile * 100) / NS_PER_S);
      delaysNs.reset();
    },
  });

  return () => {
    workedMs = now();
    if (isTicking) return;
    isTicking = true;
    tickAfter(workedMs);
  };
};
