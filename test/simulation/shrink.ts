/**
 * A shorter history for a finding. Fewer clients and fewer steps are tried first, from a few seeds, since another history
 * may come to the same finding sooner. Then choices are put back one stretch after the other to what happens when
 * nothing happens: nothing fails, nobody dies, nothing takes long. Whatever leads to the same sort of finding with fewer
 * records is kept.
 */
import { Finding } from './finding.ts';
import { type HistoryOptions, runHistory } from './history.ts';

export interface Shrunk {
  readonly options: HistoryOptions;
  readonly finding: Finding;
  /** Histories that were run for it. */
  readonly runs: number;
}

const SEEDS = 12;
const SIZES = [
  { clients: 1, steps: 30 },
  { clients: 1, steps: 60 },
  { clients: 1, steps: 120 },
  { clients: 2, steps: 120 },
] as const;
/** Stretches of choices are halved down to about this many. */
const STRETCHES_MAX = 32;

async function findingOf(options: HistoryOptions): Promise<Finding | null> {
  try {
    await runHistory(options);
    return null;
  } catch (error) {
    if (error instanceof Finding) return error;
    throw error;
  }
}

/** Null: the history has no finding. */
export async function shrink(options: HistoryOptions): Promise<Shrunk | null> {
  const first = await findingOf(options);
  if (first === null) return null;
  let best: Shrunk = { options, finding: first, runs: 1 };
  let runs = 1;

  async function tryOut(tried: HistoryOptions): Promise<boolean> {
    runs += 1;
    const finding = await findingOf(tried);
    if (finding?.sort !== best.finding.sort || finding.records.length > best.finding.records.length) return false;
    best = { options: tried, finding, runs };
    return true;
  }

  for (const size of SIZES) {
    let found = false;
    for (let index = 0; index < SEEDS && !found; index += 1)
      found = await tryOut({ ...options, seed: options.seed + index, size });
    if (found) break;
  }
  for (let stretches = 2; stretches <= STRETCHES_MAX; stretches *= 2) {
    const { choices } = best.finding;
    for (let index = 0; index < stretches; index += 1) {
      const from = Math.floor((choices * index) / stretches);
      const stretch = [from, Math.floor((choices * (index + 1)) / stretches)] as const;
      await tryOut({ ...best.options, uneventful: [...(best.options.uneventful ?? []), stretch] });
    }
  }
  return { ...best, runs };
}
