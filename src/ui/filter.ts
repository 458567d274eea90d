/** Asks the server which records a filter chooses, and marks them as the answer comes. Text is the server's to understand. */
import type { ErrorAnswer, Matches } from './answers.ts';
import { isUnanswered, reached, sentenceOf } from './ask.ts';
import { linesIn } from './lines.ts';
import { countText } from './words.ts';

export interface FilterEvents {
  /** Marks records by their seq: null for all, when there is no filter. */
  readonly onMatches: (seqs: ReadonlySet<number> | null) => void;
  readonly onNote: (text: string, isBad: boolean) => void;
}

export interface RecordFilter {
  /** What was chosen before counts no more. */
  readonly apply: (words: string) => void;
  /** Asks no more; what is marked stays. */
  readonly pause: () => void;
}

export const createRecordFilter = ({ onMatches, onNote }: FilterEvents): RecordFilter => {
  let asking = new AbortController();

  const read = async (words: string, signal: AbortSignal): Promise<void> => {
    const response = await reached(`matches?${new URLSearchParams({ words }).toString()}`, signal);
    if (!response.ok || response.body === null) throw new Error(((await response.json()) as ErrorAnswer).error);
    const seqs = new Set<number>();
    for await (const line of linesIn(response.body)) {
      const matches = JSON.parse(line) as Matches;
      for (const seq of matches.seqs) seqs.add(seq);
      const found = countText(seqs.size, 'record', 'records');
      onMatches(seqs);
      onNote(
        matches.isWhole ? found : `${found}, looked up to record ${matches.throughSeq.toLocaleString('en-US')}`,
        false,
      );
    }
  };

  return {
    pause: () => asking.abort(),
    apply(words) {
      asking.abort();
      asking = new AbortController();
      const { signal } = asking;
      if (words.trim() === '') {
        onMatches(null);
        onNote('', false);
        return;
      }
      onNote('…', false);
      read(words, signal).catch((error: unknown) => {
        if (!signal.aborted) onNote(sentenceOf(error), !isUnanswered(error));
      });
    },
  };
};
