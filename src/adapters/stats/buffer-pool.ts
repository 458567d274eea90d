/** A pool of buffers: so much work at once as there are, each with its own; the rest waits its turn, in order. */

/** Runs `work` when a buffer is free, which is its own until it settles. */
export type WithBuffer = <T>(work: (buffer: Buffer) => Promise<T>) => Promise<T>;

export const createBufferPool = (count: number, bufferBytes: number): WithBuffer => {
  const idle: Buffer[] = Array.from({ length: count }, () => Buffer.allocUnsafeSlow(bufferBytes));
  const waiting: ((buffer: Buffer) => void)[] = [];

  const take = (): Promise<Buffer> | Buffer =>
    idle.pop() ??
    new Promise<Buffer>((resolve) => {
      waiting.push(resolve);
    });

  const giveBack = (buffer: Buffer): void => {
    const next = waiting.shift();
    if (next === undefined) idle.push(buffer);
    else next(buffer);
  };

  return async (work) => {
    const buffer = await take();
    try {
      return await work(buffer);
    } finally {
      giveBack(buffer);
    }
  };
};
