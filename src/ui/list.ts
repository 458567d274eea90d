/** The list of what is in view, newest first, with the words of a history: what a picture can't tell to everybody. */
import type { EntryRow } from './answers.ts';
import { ask, sentenceOf } from './ask.ts';
import { element, made, recordButton } from './dom.ts';
import type { Kind } from './kinds.ts';
import { toldText } from './words.ts';

export const LISTED_MAX = 100;

const SOON_MS = 200;

export interface Listed {
  readonly seq: number;
  readonly kind: Kind;
}

export interface List {
  /**
   * Shows these records, a moment after the last time it was told to. `total`: how many there are of their sort. A call
   * that was under way has another row when it is of another kind.
   */
  readonly show: (listed: readonly Listed[], total: number) => void;
  readonly mark: (seq: number | null) => void;
  /** Gives the focus to the row of this record; false: it has none. */
  readonly focus: (seq: number | null) => boolean;
}

export const createList = (open: (seq: number) => void): List => {
  const body = element('rows', HTMLTableSectionElement);
  const title = element('list-title', HTMLElement);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asking = new AbortController();
  let shown = '';
  let current: number | null = null;

  const mark = (): void => {
    for (const row of body.rows) {
      if (row.dataset.seq === String(current)) row.setAttribute('aria-current', 'true');
      else row.removeAttribute('aria-current');
    }
  };

  const focus = (seq: number | null): boolean => {
    const row = [...body.rows].find((one) => one.dataset.seq === String(seq));
    row?.querySelector('button')?.focus();
    return row !== undefined;
  };

  const rowOf = ({ seq, time, what, object, caller, took, outcome, style }: EntryRow): HTMLTableRowElement => {
    const cells = [time, what, object, caller, took, outcome].map((text) => made('td', { text }));
    const row = made('tr', { class: style }, made('td', {}, recordButton(seq, open)), ...cells);
    row.dataset.seq = String(seq);
    return row;
  };

  const load = async (seqs: readonly number[], total: number): Promise<void> => {
    asking.abort();
    asking = new AbortController();
    const rows = seqs.length === 0 ? [] : await ask<EntryRow[]>('entries', { seqs: seqs.join(',') }, asking.signal);
    const focused = document.activeElement?.closest<HTMLElement>('#rows tr')?.dataset.seq;
    body.replaceChildren(...rows.map(rowOf));
    if (focused !== undefined) focus(Number(focused));
    title.textContent =
      total <= seqs.length
        ? `In view: ${toldText(total)}`
        : `In view: the newest ${seqs.length} of ${toldText(total)}; zoom in or filter for the others`;
    mark();
  };

  return {
    focus,
    show(listed, total) {
      const wanted = `${total}:${listed.map(({ seq, kind }) => `${seq} ${kind}`).join(',')}`;
      if (wanted === shown) return;
      shown = wanted;
      const seqs = listed.map(({ seq }) => seq);
      clearTimeout(timer);
      timer = setTimeout(() => {
        load(seqs, total).catch((error: unknown) => {
          if (error instanceof DOMException && error.name === 'AbortError') return;
          // The same view is asked for again when it is shown again.
          shown = '';
          title.textContent = `In view: the list could not be read. ${sentenceOf(error)}`;
        });
      }, SOON_MS);
    },
    mark(seq) {
      current = seq;
      mark();
    },
  };
};
