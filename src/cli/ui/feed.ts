/**
 * Reads a journal's outline once, a page at a time between other turns of the event loop, and then what is written, and
 * gives its frames to everybody who asks, from the first on. Holds the frames: 17 bytes for each record.
 */
import { setImmediate as otherTurns } from 'node:timers/promises';
import { openOutline } from '../../journal/outline.ts';
import type { SeqRange } from '../../journal/types.ts';
import { messageOf } from '../../domain/model/errors.ts';
import { watchJournal } from '../history/watch.ts';
import { createTimeline, TIMELINE_PATHS } from './timeline.ts';

export interface Feed {
  /** All frames so far but the first `from`, and those that come. Ends when the feed is closed or the journal can't be followed any more. */
  readonly frames: (from?: number) => AsyncGenerator<Uint8Array>;
  /** Resolves with what ended it: null when it was closed. */
  readonly ended: Promise<string | null>;
  readonly close: () => void;
}

export interface FeedOptions {
  readonly path: string;
  /** It may grow. */
  readonly live: boolean;
  readonly onProgress: (throughSeq: number, headSeq: number) => void;
  /** Told as they are met. */
  readonly onUnreadable: (ranges: readonly SeqRange[]) => void;
  /** Everything that was there is read. */
  readonly onRead: () => void;
}

export const openFeed = ({ path, live, onProgress, onUnreadable, onRead }: FeedOptions): Feed => {
  const outline = openOutline(path, TIMELINE_PATHS);
  const timeline = createTimeline();
  // Before anything is read, so that nothing can be written unseen.
  const watch = live ? watchJournal(path) : null;
  const frames: Uint8Array[] = [];
  const closing = Promise.withResolvers<null>();
  let isOver = false;
  let wakeAll = Promise.withResolvers<null>();

  const wake = (): void => {
    wakeAll.resolve(null);
    wakeAll = Promise.withResolvers<null>();
  };

  const readOn = async (fromSeq: number): Promise<number> => {
    const headSeq = outline.headSeq();
    let next = fromSeq;
    while (next <= headSeq && !isOver) {
      const page = outline.page(next, headSeq);
      frames.push(timeline.frame(page, headSeq));
      if (page.unreadable.length > 0) onUnreadable(page.unreadable);
      next = page.next;
      onProgress(next - 1, headSeq);
      wake();
      await otherTurns();
    }
    return next;
  };

  const run = async (): Promise<void> => {
    let next = await readOn(1);
    // An empty journal, too, tells the page that it has come to its end.
    if (frames.length === 0) frames.push(timeline.frame({ rows: [], unreadable: [], next: 1 }, 0));
    onRead();
    while (watch !== null && !isOver) {
      await Promise.race([watch.changed(), closing.promise]);
      next = await readOn(next);
    }
    if (!isOver) await closing.promise;
  };

  const finish = (): void => {
    isOver = true;
    watch?.close();
    outline.close();
    wake();
  };

  const ended = run().then(
    () => null,
    (error: unknown) => messageOf(error),
  );
  return {
    ended: ended.finally(finish),
    async *frames(from = 0) {
      for (let index = from; ; ) {
        const frame = frames[index];
        if (frame !== undefined) {
          index += 1;
          yield frame;
        } else if (isOver) return;
        else await wakeAll.promise;
      }
    },
    close: () => {
      isOver = true;
      closing.resolve(null);
    },
  };
};
