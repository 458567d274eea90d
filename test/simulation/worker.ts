/** Runs a share of the histories in a thread of its own and reports counts, and each seed that fails when it does. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Dimension } from './dimensions.ts';
import { report } from './report.ts';
import { type HistoryOptions, runHistory, targetOfSeed } from './history.ts';
import { shrink } from './shrink.ts';
import { threadMs, yardstickMs } from './yardstick.ts';

export interface Share {
  readonly firstSeed: number;
  readonly count: number;
  readonly onSqlite: boolean;
  readonly about: readonly Dimension[];
}

export interface Progress {
  readonly ended: number;
  readonly found: number;
}

export interface ShareResult {
  readonly histories: number;
  readonly steps: number;
  readonly stepsMin: number;
  readonly crashes: readonly (readonly [string, number])[];
  /** Processor time of its thread, and how long the yardstick took there. */
  readonly threadMs: number;
  readonly yardstickMs: number;
  readonly failures: readonly Failed[];
}

export interface Failed {
  readonly seed: number;
  readonly target: string;
  readonly message: string;
}

/** Where everything fails, nobody reads more of it. */
const FAILURES_MAX = 50;
/** The first finding of a share is told as short as it can be; that takes a few hundred histories. */
const SHRUNK_MAX = 1;
const PROGRESS_EVERY = 50;

async function told(options: HistoryOptions, error: unknown): Promise<string> {
  const shrunk = await shrink(options);
  const message = error instanceof Error ? error.message : String(error);
  return shrunk === null ? `${message} (and not when it was run again)` : report(shrunk);
}

async function run({ firstSeed, count, onSqlite, about }: Share): Promise<ShareResult> {
  const crashes = new Map<string, number>();
  const failures: Failed[] = [];
  let steps = 0;
  let stepsMin = Number.POSITIVE_INFINITY;
  let histories = 0;
  const beganMs = threadMs();
  for (let seed = firstSeed; seed < firstSeed + count && failures.length < FAILURES_MAX; seed += 1) {
    const target = targetOfSeed(seed);
    const options = { seed, target, onSqlite, about };
    try {
      const result = await runHistory(options);
      histories += 1;
      steps += result.steps;
      stepsMin = Math.min(stepsMin, result.steps);
      for (const [boundary, times] of result.crashes) crashes.set(boundary, (crashes.get(boundary) ?? 0) + times);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const failed = { seed, target, message: failures.length < SHRUNK_MAX ? await told(options, error) : message };
      failures.push(failed);
      parentPort?.postMessage(failed satisfies Failed);
    }
    const ended = seed - firstSeed + 1;
    if (ended % PROGRESS_EVERY === 0) parentPort?.postMessage({ ended, found: failures.length } satisfies Progress);
  }
  const usedMs = threadMs() - beganMs;
  return { threadMs: usedMs, yardstickMs: yardstickMs(), histories, steps, stepsMin, crashes: [...crashes], failures };
}

parentPort?.postMessage(await run(workerData as Share));
