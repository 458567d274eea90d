/**
 * Streams of lines, bounded in what is held of one: all of a stream, or its first line, where bytes of another kind follow.
 */
import type { Readable } from 'node:stream';

/** Of a first line. */
const LINE_BYTES_MAX = 1024;
const NEWLINE = 10;

/**
 * The first line of a stream; what follows it stays in the stream. Rejects when the stream ends before, or the line is
 * longer than any that is sent.
 */
export const readLine = (stream: Readable): Promise<string> =>
  new Promise((resolve, reject) => {
    let line = Buffer.alloc(0);
    const settle = (error: Error | null, rest?: Buffer): void => {
      stream.off('readable', take);
      stream.off('end', onEnd);
      stream.off('close', onEnd);
      if (error !== null) return reject(error);
      if (rest !== undefined && rest.length > 0) stream.unshift(rest);
      resolve(line.toString());
    };
    const onEnd = (): void => settle(new Error('the other side has gone'));
    const take = (): void => {
      for (;;) {
        const chunk = stream.read() as Buffer | null;
        if (chunk === null) return;
        const end = chunk.indexOf(NEWLINE);
        line = Buffer.concat([line, end < 0 ? chunk : chunk.subarray(0, end)]);
        if (line.length > LINE_BYTES_MAX) return settle(new Error('the other side sent no line'));
        if (end >= 0) return settle(null, chunk.subarray(end + 1));
      }
    };
    stream.on('readable', take);
    stream.on('end', onEnd);
    stream.on('close', onEnd);
  });

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
