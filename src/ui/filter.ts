/**
 * Asks the server which records a filter chooses, and marks them as the answer comes. Text is the server's to understand:
 * what it refuses changes nothing, and the filter that is shown goes on.
 */
import type { Matches } from './answers.ts';
import { isUnanswered, reached, refusalOf, sentenceOf } from './ask.ts';
import { linesIn } from './lines.ts';
import { countText } from './words.ts';

export interface FilterEvents {
  /** Marks records by their seq: null for all, when there is no filter. */
  readonly onMatches: (seqs: ReadonlySet<number> | null) => void;
  /** `isNews`: only because records came by themselves. */
  readonly onNote: (text: string, isBad: boolean, isNews: boolean) => void;
}

export interface RecordFilter {
  /** What was chosen before counts no more, unless this is refused. */
  readonly apply: (words: string) => void;
  /** Asks no more; what is marked stays. */
  readonly pause: () => void;
  /** Why nothing comes is said elsewhere: the note tells of what is shown again. */
  readonly lose: () => void;
  /** Asks anew for what is shown. */
  readonly again: () => void;
}

interface Asked {
  readonly words: string;
  readonly end: AbortController;
}

const askedFor = (words: string): Asked => ({ words, end: new AbortController() });

const ALL = '';

export const createRecordFilter = ({ onMatches, onNote }: FilterEvents): RecordFilter => {
  /** What is shown, and what was asked for last: another one until the server has taken it, and when it refuses it. */
  let shown = askedFor(ALL);
  let newest = shown;
  /** The last answer about what is shown, in words. */
  let told = '';
  let isLost = false;
  /** The answers about what is shown broke off. */
  let isBroken = false;

  const take = (asked: Asked): void => {
    if (shown !== asked) shown.end.abort();
    shown = asked;
  };

  const read = async (asked: Asked): Promise<void> => {
    const { words, end } = asked;
    const response = await reached(`matches?${new URLSearchParams({ words }).toString()}`, end.signal);
    if (!response.ok || response.body === null) throw await refusalOf(response);
    take(asked);
    const seqs = new Set<number>();
    let wasWhole = false;
    for await (const line of linesIn(response.body)) {
      const matches = JSON.parse(line) as Matches;
      for (const seq of matches.seqs) seqs.add(seq);
      const found = countText(seqs.size, 'record', 'records');
      onMatches(seqs);
      if (asked !== newest) continue;
      const soFar = `${found}, looked up to record ${matches.throughSeq.toLocaleString('en-US')}`;
      told = [matches.isWhole ? found : soFar, matches.note].filter(Boolean).join('. ');
      onNote(told, false, wasWhole);
      wasWhole = matches.isWhole;
    }
  };

  const fail = (asked: Asked, error: unknown): void => {
    if (asked.end.signal.aborted || asked !== newest) return;
    const sentence = sentenceOf(error);
    isBroken = asked === shown && isUnanswered(error);
    if (isBroken && isLost) return onNote(told, false, true);
    if (isUnanswered(error)) return onNote(sentence, false, false);
    onNote(`${sentence} Still shown: ${shown.words === ALL ? 'all records' : shown.words}`, true, false);
  };

  const begin = (asked: Asked): void => {
    read(asked).catch((error: unknown) => fail(asked, error));
  };

  return {
    pause() {
      for (const { end } of [shown, newest]) end.abort();
    },
    lose() {
      isLost = true;
      if (isBroken) onNote(told, false, true);
    },
    again() {
      [isLost, isBroken] = [false, false];
      for (const { end } of [shown, newest]) end.abort();
      const isRefused = newest !== shown;
      const [before, asked] = [newest, askedFor(shown.words)];
      shown = asked;
      newest = isRefused ? askedFor(before.words) : asked;
      if (asked.words !== ALL) begin(asked);
      if (isRefused) begin(newest);
    },
    apply(words) {
      if (newest !== shown) newest.end.abort();
      newest = askedFor(words.trim());
      if (newest.words === ALL) {
        take(newest);
        [told, isBroken] = ['', false];
        onMatches(null);
        onNote('', false, false);
        return;
      }
      onNote('…', false, false);
      begin(newest);
    },
  };
};
