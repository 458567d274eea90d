/** So much work at once and no more, each with a buffer of its own; the rest waits its turn, in order. */

/** Runs `work` when a lane is free, with the lane's buffer, which is its own until it settles. */
export type RunInLane = <T>(work: (buffer: Buffer) => Promise<T>) => Promise<T>;

export const createLanes = (count: number, bufferBytes: number): RunInLane => {
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
