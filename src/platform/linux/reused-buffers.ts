/**
 * What a socket reads into, where much goes through it: buffers that are used again once what was in them has left. A buffer
 * for each read would have the garbage collector take as long as the kernel takes to move the bytes.
 */
import type { OnReadOpts } from 'node:net';

const BUFFER_BYTES = 65_536;
/** One is being filled, one may be leaving; of a taker that falls behind its socket is paused. */
const SPARE_MAX = 2;

/** Takes what was read. It stays as it is until `left` is called, which may be at once. */
export type TakeRead = (chunk: Buffer, left: () => void) => void;

/** The option `onread` of a Socket, of that one alone: no byte of one stream can show up in another. */
export const readReusing = (take: TakeRead): OnReadOpts => {
  const spare: Buffer[] = [];
  let filling: Buffer;
  return {
    buffer: () => {
      filling = spare.pop() ?? Buffer.allocUnsafeSlow(BUFFER_BYTES);
      return filling;
    },
    callback: (bytesRead) => {
      const filled = filling;
      take(filled.subarray(0, bytesRead), () => {
        if (spare.length < SPARE_MAX) spare.push(filled);
      });
      return true;
    },
  };
};
