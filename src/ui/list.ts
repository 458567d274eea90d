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

/** What makes a row another one: a call that was under way has ended. */
const keyOf = ({ seq, kind }: Listed): string => `${seq} ${kind}`;

const unshownText = (count: number): string =>
  count === 0
    ? ''
    : `; ${count.toLocaleString('en-US')} of them cannot be shown, for they are pruned by now, or damaged`;

export const createList = (open: (seq: number) => void): List => {
  const body = element('rows', HTMLTableSectionElement);
  const box = element('list-box', HTMLElement);
  const title = element('list-title', HTMLElement);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let shown = '';
  let current: number | null = null;
  /** By their keys; null: the server has none. */
  let rows: ReadonlyMap<string, HTMLTableRowElement | null> = new Map();
  /** What is to be shown once that is here which was asked for; null: nothing was. */
  let due: { readonly listed: readonly Listed[]; readonly total: number } | null = null;
  let isLoading = false;

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

  /** Rows that stay are not touched: somebody may be at one of them, with the mouse, by keys or with a screen reader. */
  const place = (wanted: readonly HTMLTableRowElement[]): void => {
    const hadFocus = body.contains(document.activeElement);
    const seq = document.activeElement?.closest<HTMLElement>('#rows tr')?.dataset.seq;
    const kept = new Set(wanted);
    for (const row of [...body.rows]) if (!kept.has(row)) row.remove();
    let next = body.firstElementChild;
    for (const row of wanted) {
      if (row === next) next = row.nextElementSibling;
      else body.insertBefore(row, next);
    }
    if (!hadFocus || body.contains(document.activeElement)) return;
    // Of a call that has ended there is another row; where there is none any more the list goes on from its beginning.
    if (!focus(Number(seq))) box.focus();
  };

  const load = async (listed: readonly Listed[], total: number): Promise<void> => {
    const missing = listed.filter((one) => !rows.has(keyOf(one))).map(({ seq }) => seq);
    const entries = missing.length === 0 ? [] : await ask<EntryRow[]>('entries', { seqs: missing.join(',') });
    const fresh = new Map(entries.map((entry) => [entry.seq, rowOf(entry)]));
    rows = new Map(listed.map((one) => [keyOf(one), rows.get(keyOf(one)) ?? fresh.get(one.seq) ?? null]));
    const placed = [...rows.values()].filter((row) => row !== null);
    place(placed);
    const told =
      total <= listed.length
        ? toldText(total)
        : `the newest ${listed.length} of ${toldText(total)}; zoom in or filter for the others`;
    title.textContent = `In view: ${told}${unshownText(listed.length - placed.length)}`;
    mark();
  };

  /** One after the other: what is asked for again and again, while records come, would otherwise never be here. */
  const loadDue = async (): Promise<void> => {
    if (isLoading) return;
    isLoading = true;
    try {
      while (due !== null) {
        const { listed, total } = due;
        due = null;
        await load(listed, total);
      }
    } catch (error) {
      // The same view is asked for again when it is shown again.
      shown = '';
      title.textContent = `In view: the list could not be read. ${sentenceOf(error)}`;
    } finally {
      isLoading = false;
    }
  };

  return {
    focus,
    show(listed, total) {
      const wanted = `${total}:${listed.map(keyOf).join(',')}`;
      if (wanted === shown) return;
      shown = wanted;
      clearTimeout(timer);
      timer = setTimeout(() => {
        due = { listed, total };
        void loadDue();
      }, SOON_MS);
    },
    mark(seq) {
      current = seq;
      mark();
    },
  };
};
