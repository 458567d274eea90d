/** The filter box: what is typed there, and what is said of it. What is chosen is told, and decided elsewhere. */
import { element, say } from './dom.ts';
import { createRecordFilter } from './filter.ts';

export interface FilterBox {
  readonly focus: () => void;
  /** Puts these words into the box, and asks which records they choose. */
  readonly apply: (words: string) => void;
  /** The connection is lost, which is said elsewhere. */
  readonly lose: () => void;
  /** Asks anew which records those are that were chosen. */
  readonly again: () => void;
}

export interface FilterBoxEvents {
  readonly onMatches: (seqs: ReadonlySet<number> | null) => void;
  /** Somebody wants another filter. */
  readonly onWords: (words: string) => void;
}

export const createFilterBox = ({ onMatches, onWords }: FilterBoxEvents): FilterBox => {
  const form = element('filter-form', HTMLFormElement);
  const box = element('filter', HTMLInputElement);
  const note = element('filter-note', HTMLElement);
  let applied = '';
  const filter = createRecordFilter({
    onMatches,
    onNote: (text, isBad, isNews) => {
      say(note, text, !isNews);
      note.toggleAttribute('data-bad', isBad);
      box.setAttribute('aria-invalid', String(isBad));
    },
  });

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    onWords(box.value.trim());
  });
  // The browser's own cross that empties the box.
  box.addEventListener('search', () => {
    if (box.value === '' && applied !== '') form.requestSubmit();
  });
  document.addEventListener('visibilitychange', () => {
    // A filter that goes on holds a connection; it is asked anew when somebody looks again.
    if (document.hidden) filter.pause();
    else filter.again();
  });

  return {
    again: () => filter.again(),
    lose: () => filter.lose(),
    focus: () => box.focus(),
    apply(words) {
      applied = words;
      box.value = words;
      filter.apply(words);
    },
  };
};
