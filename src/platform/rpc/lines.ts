/** Streams of lines, bounded in what is held of one. */

/**
 * Cuts a stream of bytes into lines. The returned function takes chunks; onTooLong is called, once, when a line is
 * longer than `bytesMax`, and nothing after it.
 */
export const createLineReader = (
  bytesMax: number,
  onLine: (line: string) => void,
  onTooLong: () => void,
): ((chunk: Buffer) => void) => {
  let pieces: Buffer[] = [];
  let length = 0;
  let broken = false;
  return (chunk) => {
    let at = 0;
    while (!broken) {
      const newlineAt = chunk.indexOf('\n', at);
      const end = newlineAt < 0 ? chunk.length : newlineAt;
      length += end - at;
      if (length > bytesMax) {
        broken = true;
        onTooLong();
        return;
      }
      pieces.push(chunk.subarray(at, end));
      if (newlineAt < 0) return;
      const line = Buffer.concat(pieces).toString();
      pieces = [];
      length = 0;
      at = newlineAt + 1;
      onLine(line);
    }
  };
};
