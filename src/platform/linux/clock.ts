/**
 * The machine's clocks as the engine wants them. The wall clock comes with nanoseconds, from the monotonic one and the
 * offset between the two, which is taken anew when somebody has set the wall clock.
 */
import type { Clock } from '../../engine/ports.ts';
import { TIMER_MS_MAX } from '../rpc/timeout.ts';

const NS_PER_MS = 1_000_000n;
/** Further apart than rounding explains: the wall clock was stepped or has drifted. */
const OFFSET_ERROR_NS_MAX = 2n * NS_PER_MS;

export function createSystemClock(): Clock {
  const monoNs = (): bigint => process.hrtime.bigint();
  const coarseNs = (): bigint => BigInt(Date.now()) * NS_PER_MS;
  let offsetNs = coarseNs() - monoNs();

  const nowNs = (): bigint => {
    const fine = monoNs() + offsetNs;
    const coarse = coarseNs();
    const apart = fine > coarse ? fine - coarse : coarse - fine;
    if (apart <= OFFSET_ERROR_NS_MAX) return fine;
    offsetNs = coarse - monoNs();
    return coarse;
  };

  function at(dueAtNs: bigint, fire: () => void): () => void {
    let timer: NodeJS.Timeout;
    const wait = (): void => {
      const leftMs = Number((dueAtNs - nowNs() + NS_PER_MS - 1n) / NS_PER_MS);
      // What no timer can hold is waited for in several parts.
      if (leftMs <= 0) timer = setTimeout(fire, 0);
      else timer = leftMs > TIMER_MS_MAX ? setTimeout(wait, TIMER_MS_MAX) : setTimeout(fire, leftMs);
    };
    wait();
    return () => clearTimeout(timer);
  }

  return { nowNs, monoNs, at };
}
