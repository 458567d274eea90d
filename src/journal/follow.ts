/**
 * Following a journal: an Observable per consumer, each with a cursor of its own, woken by commits. RxJS has no
 * backpressure, so a commit only signals; every consumer then pulls page after page until nothing is left.
 */
import { Observable, type Subject } from 'rxjs';
import { errorOf } from './errors.ts';
import type { JournalRecord } from './types.ts';

/** Durable records from a cursor on: at most a page, none when there is nothing yet. `next` is where to go on. */
export interface FollowPage {
  readonly records: readonly JournalRecord[];
  readonly next: number;
  /** More may be there already. */
  readonly more: boolean;
}

/**
 * @param readPage  reads at the cursor; a throw ends the stream with that error
 * @param commits   fires after each commit; its error or completion ends the stream
 * @param later     runs the next pull: in a turn of its own, so that a long catch-up never holds the loop
 */
export const followPages = (
  fromSeq: number,
  readPage: (cursor: number) => FollowPage,
  commits: Subject<void>,
  later: (pull: () => void) => void,
): Observable<readonly JournalRecord[]> =>
  new Observable((subscriber) => {
    let cursor = fromSeq;
    let scheduled = false;
    const wake = (): void => {
      if (scheduled || subscriber.closed) return;
      scheduled = true;
      later(pull);
    };
    const pull = (): void => {
      scheduled = false;
      if (subscriber.closed) return;
      try {
        const page = readPage(cursor);
        cursor = page.next;
        if (page.records.length > 0) subscriber.next(page.records);
        if (page.more) wake();
      } catch (thrown) {
        subscriber.error(errorOf(thrown));
      }
    };
    const signals = commits.subscribe({
      next: wake,
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    });
    wake();
    return () => signals.unsubscribe();
  });
