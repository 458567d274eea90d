/**
 * Searching a long journal, window by window, on the caller's thread and one more (search-worker.ts): each takes the next
 * window that nobody has. Gives the windows in their order; whoever stops asking ends the search. The other thread may begin
 * ahead, while the caller finds out what it does with what is found.
 */
import { statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setImmediate as otherTurns } from 'node:timers/promises';
import type { MarkRule } from './marks.ts';
import { startNativeThread } from '../platform/native-thread.ts';

export interface Window {
  readonly fromSeq: number;
  readonly toSeq: number;
}

export interface FoundWindow<T> extends Window {
  readonly found: T;
}

/** What is looked for in each window; on either thread the same. */
export type Look =
  | { readonly kind: 'marks'; readonly rules: readonly MarkRule[] }
  /** They go on who recorded more behind `seenToSeq`; null: behind the window. */
  | { readonly kind: 'suspectCalls'; readonly recordsMax: number; readonly seenToSeq: number | null };

export interface SearchTask {
  readonly look: Look;
  readonly windows: readonly Window[];
  /** A number of 32 bits: the index of the next window that nobody has taken. */
  readonly untaken: SharedArrayBuffer;
}

/** What the other thread is started with. */
export interface SearchHelperData {
  readonly path: string;
}

export interface FromSearchWorker<T> {
  readonly index: number;
  readonly found: T;
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
export interface SearchHelper<T> {
  readonly begin: (task: SearchTask, onFound: (found: FromSearchWorker<T>) => void) => void;
  readonly hasEnded: () => boolean;
  /** Something was found, or it has ended. */
  readonly news: () => Promise<void>;
  readonly end: () => void;
}

const startHelper = <T>(path: string): SearchHelper<T> => {
  const program = new URL('./search-worker.ts', import.meta.url);
  const given: SearchHelperData = { path };
  const { worker, end } = startNativeThread(program, given, { name: 'scribe search' });
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
      if (hasEnded) return;
      worker.on('message', (found: FromSearchWorker<T>) => {
        onFound(found);
        tell();
      });
      worker.postMessage(task);
    },
    hasEnded: () => hasEnded,
    news: async () => news.promise,
    end: () => {
      hasEnded = true;
      void end();
    },
  };
};

const isWorthAThread = (records: number): boolean => availableParallelism() > 1 && records > HELPED_ABOVE_RECORDS;

/** Starts it for a search of so many records; null: that is not worth it. Whoever searches ends it. */
export type HelpSearch = <T>(records: number) => SearchHelper<T> | null;

export const helpSearch =
  (path: string): HelpSearch =>
  (records) =>
    isWorthAThread(records) ? startHelper(path) : null;

/** A journal of fewer bytes has too few records. */
const HELPED_ABOVE_BYTES = 64 * 1024 * 1024;

export interface SoonHelp {
  readonly help: HelpSearch;
  /** Ends the thread that no search came for. */
  readonly end: () => void;
}

/** The same; the thread of the first search comes up from now on, where the journal is a long one. */
export const helpSearchSoon = (path: string): SoonHelp => {
  const isLong = availableParallelism() > 1 && statSync(path).size > HELPED_ABOVE_BYTES;
  let first: SearchHelper<never> | null = isLong ? startHelper(path) : null;
  return {
    help: <T>(records: number) => {
      // Nothing has been asked of it, so that it may find whatever it is asked for.
      const helper = first as SearchHelper<T> | null;
      first = null;
      return helper ?? helpSearch(path)<T>(records);
    },
    end: () => first?.end(),
  };
};

const recordsIn = (windows: readonly Window[]): number =>
  windows.reduce((sum, { fromSeq, toSeq }) => sum + toSeq - fromSeq + 1, 0);

export interface WindowSearch<T> {
  /** Has the other thread begin, before anybody asks for what is found. */
  readonly beginAhead: () => void;
  /** Asked for once; ends the search when no more is asked for. */
  readonly windows: () => AsyncGenerator<FoundWindow<T>, void>;
  readonly end: () => void;
}

/**
 * @param lookHere  looks at a window on this thread
 * @param help  for so many records; where it does not begin ahead, behind the first window if anybody asks on; null: this
 *   thread searches alone
 */
export const createWindowSearch = <T>(
  { look, windows }: Omit<SearchTask, 'untaken'>,
  lookHere: (window: Window) => T,
  help: HelpSearch,
): WindowSearch<T> => {
  const task: SearchTask = { look, windows, untaken: new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT) };
  const take = takerOf(task);
  const found = new Map<number, T>();
  let helper: SearchHelper<T> | null | undefined;
  const begin = (ahead: readonly Window[]): void => {
    if (helper !== undefined) return;
    helper = help(recordsIn(ahead));
    helper?.begin(task, (one) => found.set(one.index, one.found));
  };
  const end = (): void => helper?.end();
  const lookAt = (index: number): void => {
    const window = windows[index];
    if (window !== undefined) found.set(index, lookHere(window));
  };
  /** What the other has found meanwhile comes in: messages do so between two turns, and this may be the end of one. */
  const othersTurns = async (): Promise<void> => {
    await otherTurns();
    if (helper != null) await otherTurns();
  };
  const foundAt = async (index: number): Promise<T> => {
    for (;;) {
      // Whoever asked has had its turn with the window before; what is done elsewhere, and timers, come in between.
      await othersTurns();
      const one = found.get(index);
      if (one !== undefined) return one;
      const mine = take();
      if (mine !== undefined) lookAt(mine);
      else if (helper == null || helper.hasEnded()) lookAt(index);
      else await helper.news();
    }
  };
  async function* inOrder(): AsyncGenerator<FoundWindow<T>, void> {
    try {
      for (const [index, window] of windows.entries()) {
        if (index === 1) begin(windows.slice(1));
        yield { ...window, found: await foundAt(index) };
        found.delete(index);
      }
    } finally {
      end();
    }
  }
  return { beginAhead: () => begin(windows), windows: inOrder, end };
};
