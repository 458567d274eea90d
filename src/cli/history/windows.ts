/** In which stretches a range is searched, from which end on. Pure. */
import type { Window } from '../../journal/search-windows.ts';

/** In which order entries are given, and how many records are looked at first. */
export interface Order {
  readonly isReversed: boolean;
  readonly windowMin: number;
}

/** Of a range, from the end that is shown first; each is larger than the one before, up to a size. */
export function* windowsOf(
  { fromSeq, toSeq }: Window,
  { isReversed, windowMin }: Order,
  windowMax: number,
): Generator<Window> {
  for (let done = 0, size = windowMin; fromSeq + done <= toSeq; done += size, size = Math.min(4 * size, windowMax)) {
    const count = Math.min(size, toSeq - fromSeq - done + 1);
    const first = isReversed ? toSeq - done - count + 1 : fromSeq + done;
    yield { fromSeq: first, toSeq: first + count - 1 };
  }
}
