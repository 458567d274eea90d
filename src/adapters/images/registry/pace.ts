/**
 * Whether a transfer goes on: a server that sends a byte now and then is as good as silent, and everybody who wants what it
 * sends would wait for ever. Only the time counts in which it was waited for: a slow disk here is no fault of the server. Pure.
 */

/** What a server has to send, while it sends, for its transfer not to be given up. */
export interface Progress {
  /** Something in each stretch of this time. */
  readonly timeoutMs: number;
  /** So much in each whole stretch of it; 0: anything does. */
  readonly bytesMin: number;
}

/** Told of each piece how long it was waited for and how long it is; true when too little has come. */
export const createPace = ({ timeoutMs, bytesMin }: Progress): ((waitedMs: number, bytes: number) => boolean) => {
  let stretch = { waitedMs: 0, bytes: 0 };
  return (waitedMs, bytes) => {
    stretch = { waitedMs: stretch.waitedMs + waitedMs, bytes: stretch.bytes + bytes };
    if (stretch.waitedMs < timeoutMs) return false;
    const isTooLittle = stretch.bytes < bytesMin;
    stretch = { waitedMs: 0, bytes: 0 };
    return isTooLittle;
  };
};
