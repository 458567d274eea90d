/**
 * What a command that goes on for ever has been given of a journal so far, for the record of its end. Once that was asked
 * nothing more is given, so that the record is not behind what somebody has seen.
 */
import type { ReadExtent } from './io.ts';

export interface Given {
  /** Before so many are given. Does not resolve any more when the end was told. */
  readonly giving: (count: number) => Promise<void>;
  readonly atEnd: () => ReadExtent;
}

/** @param readSeq  the last record that was read, whether or not anything of it was to be given */
export const createGiven = (fromSeq: number, readSeq: () => number): Given => {
  let shown = 0;
  let isOver = false;
  return {
    giving: async (count) => {
      if (isOver) return new Promise<never>(() => {});
      shown += count;
    },
    atEnd: () => {
      isOver = true;
      return { fromSeq, toSeq: readSeq(), shown };
    },
  };
};
