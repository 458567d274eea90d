/**
 * Reads a journal's outline once, a page at a time between other turns of the event loop, and then what is written, and
 * gives its frames to everybody who asks, from the first on, and at the end why nothing follows. Holds the frames (frame-log.ts): 17
 * bytes for each record, and a few more for each call that ended after it was sent.
 */
import { setImmediate as otherTurns } from 'node:timers/promises';
import { openOutline } from '../../journal/outline.ts';
import type { SeqRange } from '../../journal/types.ts';
import { messageOf } from '../../domain/model/errors.ts';
import { encodeFrame, lastFrame } from '../../ui/frames.ts';
import { withRemedy } from '../damage.ts';
import { watchJournal } from '../history/watch.ts';
import { BEGINNING, createFrameLog, type Place } from './frame-log.ts';
import { createTimeline, TIMELINE_PATHS } from './timeline.ts';

export interface Feed {
  /** All that is behind a place, and what comes. Ends when the feed is closed, or when the journal can't be followed any more, which it says. */
  readonly frames: (from?: Place) => AsyncGenerator<Uint8Array>;
  /** Resolves with what ended it, in sentences: null when it was closed. */
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
  const log = createFrameLog();
  const closing = Promise.withResolvers<null>();
  let isOver = false;
  let isEmpty = true;
  let why: string | null = null;
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
      log.add(timeline.frame(page, headSeq));
      isEmpty = false;
      if (page.unreadable.length > 0) onUnreadable(page.unreadable);
      next = page.next;
      onProgress(next - 1, headSeq);
      wake();
      await otherTurns();
    }
    return next;
  };

  const run = async (): Promise<void> => {
    const reading = watch?.reading ?? ((read) => read());
    let next = await reading(() => readOn(1));
    // An empty journal, too, tells the page that it has come to its end.
    if (isEmpty) log.add(timeline.frame({ rows: [], unreadable: [], next: 1 }, 0));
    onRead();
    while (watch !== null && !isOver) {
      await watch.changed();
      next = await reading(() => readOn(next));
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
    (error: unknown) => (why = withRemedy(messageOf(error))),
  );
  return {
    ended: ended.finally(finish),
    async *frames(from = BEGINNING) {
      let place = from;
      for (;;) {
        const frame = log.behind(place);
        if (frame !== null) {
          const { throughSeq, lanes } = frame.head;
          place = { throughSeq, lanes: place.lanes + lanes.length };
          yield encodeFrame(frame);
        } else if (isOver) {
          if (why !== null) yield encodeFrame(lastFrame(Math.max(0, place.throughSeq), why));
          return;
        } else await wakeAll.promise;
      }
    },
    close: () => {
      isOver = true;
      watch?.close();
      closing.resolve(null);
    },
  };
};
