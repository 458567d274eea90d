/** Runs a share of the histories in a thread of its own and reports counts, or the first seed that fails. */
import { parentPort, workerData } from 'node:worker_threads';
import { runHistory, targetOfSeed } from './history.ts';

export interface Share {
  readonly firstSeed: number;
  readonly count: number;
}

export interface ShareResult {
  readonly histories: number;
  readonly steps: number;
  readonly stepsMin: number;
  readonly crashes: readonly (readonly [string, number])[];
  readonly failures: readonly { readonly seed: number; readonly target: string; readonly message: string }[];
}

const FAILURES_MAX = 5;

async function run({ firstSeed, count }: Share): Promise<ShareResult> {
  const crashes = new Map<string, number>();
  const failures: { seed: number; target: string; message: string }[] = [];
  let steps = 0;
  let stepsMin = Number.POSITIVE_INFINITY;
  let histories = 0;
  for (let seed = firstSeed; seed < firstSeed + count && failures.length < FAILURES_MAX; seed += 1) {
    const target = targetOfSeed(seed);
    try {
      const result = await runHistory({ seed, target });
      histories += 1;
      steps += result.steps;
      stepsMin = Math.min(stepsMin, result.steps);
      for (const [boundary, times] of result.crashes) crashes.set(boundary, (crashes.get(boundary) ?? 0) + times);
    } catch (error) {
      failures.push({ seed, target, message: error instanceof Error ? error.message : String(error) });
    }
  }
  return { histories, steps, stepsMin, crashes: [...crashes], failures };
}

parentPort?.postMessage(await run(workerData as Share));
