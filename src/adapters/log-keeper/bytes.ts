/**
 * Finding and copying bytes four at a time, for lines too short to be worth a call into native code (which costs as
 * much as 100 bytes do here). Reads and writes up to 3 bytes too many: both areas must have room for that.
 */

/** Below this many bytes, looking and copying here is faster. */
const SHORT_BYTES = 256;
/** Room that areas must have behind their last byte. */
const SLACK_BYTES = SHORT_BYTES + 4;

const WORD_BYTES = 4;
const NEWLINE = 10;
/** The newline in every byte of a word, and the masks of the classic search for a zero byte. */
const NEWLINES = 0x0a0a0a0a;
const ONES = 0x01010101;
const HIGH_BITS = 0x80808080;
const BITS_PER_BYTE_LOG2 = 3;
const HIGHEST_BIT = 31;

/** Bytes with a view for access by words. */
export interface Area {
  readonly bytes: Buffer;
  readonly words: DataView;
}

export const createArea = (sizeBytes: number): Area => {
  // Not from Node's pool, which would be held as a whole.
  const bytes = Buffer.allocUnsafeSlow(sizeBytes + SLACK_BYTES);
  return { bytes, words: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) };
};

/** Where the next newline is; there must be one. */
export const findNewline = ({ bytes, words }: Area, start: number): number => {
  const soon = start + SHORT_BYTES;
  for (let at = start; at < soon; at += WORD_BYTES) {
    const zeroWhereNewline = words.getInt32(at, true) ^ NEWLINES;
    const found = (zeroWhereNewline - ONES) & ~zeroWhereNewline & HIGH_BITS;
    // The lowest bit set is that of the first newline; those above may be wrong.
    if (found !== 0) return at + ((HIGHEST_BIT - Math.clz32(found & -found)) >> BITS_PER_BYTE_LOG2);
  }
  return bytes.indexOf(NEWLINE, soon);
};

/** Copies from[start, end) to `at`; overwrites up to 3 bytes behind. */
export const copyBytes = (from: Area, start: number, end: number, to: Area, at: number): void => {
  if (end - start > SHORT_BYTES) {
    from.bytes.copy(to.bytes, at, start, end);
    return;
  }
  for (let source = start, target = at; source < end; source += WORD_BYTES, target += WORD_BYTES)
    to.words.setInt32(target, from.words.getInt32(source));
};
