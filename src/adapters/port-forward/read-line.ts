/** Reads the first line of a stream and leaves what follows it in the stream: both sides of a forwarder begin so. */
import type { Readable } from 'node:stream';

const LINE_BYTES_MAX = 1024;
const NEWLINE = 10;

/** Rejects when the stream ends before, or the line is longer than any that is sent. */
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
        if (end >= 0) return settle(null, chunk.subarray(end + 1));
        if (line.length > LINE_BYTES_MAX) return settle(new Error('the other side sent no line'));
      }
    };
    stream.on('readable', take);
    stream.on('end', onEnd);
    stream.on('close', onEnd);
  });
