/** What a command has read of a journal that it read from its first record to its newest. */
import { openReader } from '../journal/open.ts';
import type { ReadExtent } from './io.ts';

/** Nothing where it cannot be read: whoever reads it says why. */
export const wholeJournal = (path: string): ReadExtent => {
  try {
    const reader = openReader(path);
    try {
      return { fromSeq: 1, toSeq: reader.headSeq() };
    } finally {
      reader.close();
    }
  } catch {
    return {};
  }
};
