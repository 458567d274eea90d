/**
 * Quiet periods: virtual time in which nobody calls and nothing fails. Clients who repeat Stop and Remove until all is
 * gone pay every debt; without them whatever is owed has to be paid by the daemon alone.
 */
import type { History } from './history.ts';
import { checkLiveness } from './liveness.ts';
import { mend } from './unresponsive.ts';

/** Longer than a claim (two minutes), the longest wait between two tries (one), and a few of these in a row. */
const QUIET_NS = 420_000_000_000n;
const STEPS_MAX = 20_000;

/** With `mended`, nothing fails any more that failed again and again. */
export async function beQuiet(history: History, { mended }: { readonly mended: boolean }): Promise<void> {
  const { scheduler } = history;
  const { calm } = history;
  history.calm = true;
  const held: (() => void)[] = [];
  history.held = held;
  history.world.diskIsFull = false;
  if (mended) mend(history.world);
  history.world.nextCommitFails = false;
  const untilNs = scheduler.nowNs() + QUIET_NS;
  // Time passes even where nothing is left to do.
  scheduler.at(untilNs, () => undefined);
  const lastStep = scheduler.steps() + STEPS_MAX;
  while (history.violation === null && scheduler.nowNs() < untilNs && scheduler.steps() < lastStep)
    if (!(await scheduler.step())) break;
  if (history.violation === null) history.guard(checkLiveness)(history);
  history.held = null;
  for (const go of held) scheduler.after(1, go);
  history.calm = calm;
}
