/**
 * Searching a long journal, window by window, on the caller's thread and one more (search-worker.ts): each takes the next
 * window that nobody has. Gives the windows in their order; whoever stops asking ends the search.
 */
import { availableParallelism } from 'node:os';
import { setImmediate as otherTurns } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Mark, MarkRule } from './marks.ts';

export interface Window {
  readonly fromSeq: number;
  readonly toSeq: number;
}

export interface MarkedWindow extends Window {
  readonly marks: readonly Mark[];
}

interface WindowSearch {
  readonly rules: readonly MarkRule[];
  readonly windows: readonly Window[];
}

export interface SearchTask extends WindowSearch {
  /** A number of 32 bits: the index of the next window that nobody has taken. */
  readonly untaken: SharedArrayBuffer;
}

export interface FromSearchWorker {
  readonly index: number;
  readonly marks: readonly Mark[];
}

/** With fewer records ahead a thread takes longer to start than it saves. */
const HELPED_ABOVE_RECORDS = 150_000;

/** Gives each index to one of those who ask, on whichever thread; undefined when none is left. */
export const takerOf = ({ windows, untaken }: Pick<SearchTask, 'windows' | 'untaken'>): (() => number | undefined) => {
  const next = new Int32Array(untaken);
  return () => {
    const index = Atomics.add(next, 0, 1);
    return index < windows.length ? index : undefined;
  };
};

/** Searches too, on a thread of its own. What it did not give back when it has ended is the caller's to search. */
export interface SearchHelper {
  readonly begin: (task: SearchTask, onFound: (found: FromSearchWorker) => void) => void;
  readonly hasEnded: () => boolean;
  /** Something was found, or it has ended. */
  readonly news: () => Promise<void>;
  readonly end: () => void;
}

const startHelper = (path: string): SearchHelper => {
  const worker = new Worker(new URL('./search-worker.ts', import.meta.url), {
    name: 'scribe search',
    workerData: path,
  });
  let hasEnded = false;
  let news = Promise.withResolvers<void>();
  const tell = (): void => {
    news.resolve();
    news = Promise.withResolvers();
  };
  // It comes to no harm: the caller searches on alone, and meets what is wrong with the journal.
  worker.on('error', () => {});
  worker.once('exit', () => {
    hasEnded = true;
    tell();
  });
  return {
    begin: (task, onFound) => {
      worker.on('message', (found: FromSearchWorker) => {
        onFound(found);
        tell();
      });
      worker.postMessage(task);
    },
    hasEnded: () => hasEnded,
    news: async () => news.promise,
    end: () => void worker.terminate(),
  };
};

export const isWorthAThread = (records: number): boolean =>
  availableParallelism() > 1 && records > HELPED_ABOVE_RECORDS;

/** Starts it for a search of so many records, where that is worth it. Whoever searches ends it. */
export const helpSearch = (path: string, records: number): SearchHelper | null =>
  isWorthAThread(records) ? startHelper(path) : null;

const recordsIn = (windows: readonly Window[]): number =>
  windows.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0);

/**
 * @param marked  searches a stretch on this thread
 * @param help  for so many records, behind the first window if anybody asks on; null: this thread searches alone
 */
export async function* searchWindows(
  { rules, windows }: WindowSearch,
  marked: (rules: readonly MarkRule[], fromSeq: number, toSeq: number) => readonly Mark[],
  help: (records: number) => SearchHelper | null,
): AsyncGenerator<MarkedWindow, void> {
  const task: SearchTask = { rules, windows, untaken: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT) };
  const take = takerOf(task);
  const found = new Map<number, readonly Mark[]>();
  const markedAt = (index: number): readonly Mark[] => {
    const window = windows[index];
    return window === undefined ? [] : marked(rules, window.fromSeq, window.toSeq);
  };
  let helper: SearchHelper | null = null;
  try {
    for (const [index, window] of windows.entries()) {
      if (index === 1) {
        helper = help(recordsIn(windows.slice(1)));
        helper?.begin(task, ({ index: at, marks }) => found.set(at, marks));
      }
      while (!found.has(index)) {
        const mine = take();
        if (mine !== undefined) found.set(mine, markedAt(mine));
        else if (helper === null || helper.hasEnded()) found.set(index, markedAt(index));
        else await helper.news();
      }
      yield { ...window, marks: found.get(index) ?? [] };
      found.delete(index);
      // What is done elsewhere, and timers, come in between.
      await otherTurns();
    }
  } finally {
    helper?.end();
  }
}
