/**
 * Follows a journal from where a cursor is: shows what is there and what comes, each call when it has ended, and saves the
 * cursor behind whatever was written before anything else is. What was written and not saved is shown again.
 */
import type { Cursor } from '../cursor.ts';
import type { Entry } from './entries.ts';
import type { Shown } from './rows.ts';
import type { Scan } from './scan.ts';
import type { JournalWatch } from './watch.ts';

/** Entries that are written together, when so many are there at once. */
const TOGETHER_MAX = 50;
/** Records that may pass with nothing to show before the cursor is saved all the same. */
const UNSAVED_MAX = 1000;

export interface Resumed {
  readonly scan: Scan;
  readonly isChosen: (entry: Entry) => boolean;
  readonly shown: Shown;
  readonly watch: JournalWatch;
  readonly cursor: Cursor;
}

export const followFromCursor = async ({ scan, isChosen, shown, watch, cursor }: Resumed): Promise<never> => {
  let savedSeq = cursor.seq;
  const save = async (seq: number): Promise<void> => {
    await shown.flush();
    await cursor.save(seq);
    savedSeq = seq;
  };
  await scan.goLive();
  await shown.flush();
  const showNews = async (): Promise<void> => {
    let count = 0;
    let lastSeq = savedSeq;
    for (const { entries, throughSeq } of scan.steps()) {
      const chosen = entries.filter(isChosen);
      for (const entry of chosen) await shown.show(entry);
      count += chosen.length;
      lastSeq = throughSeq;
      if (count < TOGETHER_MAX && lastSeq - savedSeq < UNSAVED_MAX) continue;
      await save(lastSeq);
      count = 0;
    }
    if (count > 0) await save(lastSeq);
  };
  for (;;) {
    await watch.reading(showNews);
    await watch.changed();
  }
};
