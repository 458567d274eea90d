/** Many histories on many threads: who asks hears how far it is, and what was found. */
import { Worker } from 'node:worker_threads';
import type { Dimension } from './dimensions.ts';
import type { Failed, Progress, Share, ShareResult } from './worker.ts';

export interface RunOptions {
  readonly firstSeed: number;
  readonly count: number;
  readonly threads: number;
  /** On the journal that scribe runs on. */
  readonly onSqlite?: boolean;
  /** Dimensions that all of them are about; few are about each otherwise. */
  readonly about?: readonly Dimension[];
  /** Histories that have ended, those of all threads. */
  readonly progress?: (ended: number, found: number) => void;
  /** Hears of a history with a finding when it has ended: a run that is stopped has told what it found. */
  readonly found?: (failed: Failed) => void;
}

/** What a history leaves behind is garbage soon: with the room that threads get otherwise, much of it is moved about first. */
const YOUNG_MB = 192;

function runShare(
  share: Share,
  hear: (progress: Progress) => void,
  found: (failed: Failed) => void,
): Promise<ShareResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData: share,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
    });
    worker.on('message', (message: Progress | ShareResult | Failed) => {
      if ('crashes' in message) resolve(message);
      else if ('ended' in message) hear(message);
      else found(message);
    });
    worker.once('error', reject);
  });
}

/** One result, of all histories together. */
export async function runHistories({
  firstSeed,
  count,
  threads,
  onSqlite = false,
  about = [],
  progress,
  found = () => undefined,
}: RunOptions): Promise<ShareResult> {
  const each = Math.ceil(count / threads);
  const heard = new Map<number, Progress>();
  const sum = (key: keyof Progress): number => [...heard.values()].reduce((total, one) => total + one[key], 0);
  const shares = await Promise.all(
    Array.from({ length: threads }, (_, index) =>
      runShare(
        {
          firstSeed: firstSeed + index * each,
          count: Math.max(0, Math.min(each, count - index * each)),
          onSqlite,
          about,
        },
        (one) => {
          heard.set(index, one);
          progress?.(sum('ended'), sum('found'));
        },
        found,
      ),
    ),
  );
  const crashes = new Map<string, number>();
  for (const [boundary, times] of shares.flatMap((share) => share.crashes))
    crashes.set(boundary, (crashes.get(boundary) ?? 0) + times);
  return {
    histories: shares.reduce((total, share) => total + share.histories, 0),
    steps: shares.reduce((total, share) => total + share.steps, 0),
    threadMs: shares.reduce((total, share) => total + share.threadMs, 0),
    yardstickMs: shares.reduce((total, share) => total + share.yardstickMs, 0) / shares.length,
    stepsMin: Math.min(...shares.map((share) => share.stepsMin)),
    crashes: [...crashes],
    failures: shares.flatMap((share) => share.failures),
  };
}
