/**
 * gunzip on libuv's pool, into buffers of the caller's, which can be used again, where node:zlib takes a new one for each piece. Must
 * not know where bytes come from, nor what becomes of them. What is wrong with them is a result and not thrown.
 */

export interface Inflated {
  readonly writtenBytes: number;
  /** starved: it takes more input to go on, and there was none. */
  readonly state: 'inside' | 'memberEnd' | 'starved' | 'damaged';
}

export interface Inflater {
  /** What is inflated next, once all input before was taken. It must not change until then. */
  readonly give: (input: Buffer) => void;
  readonly leftBytes: () => number;
  /** The next byte of the input that is left. */
  readonly peek: () => number | undefined;
  /** Inflates until there is no more input or room. One at a time; both buffers are in use until it resolves. */
  readonly inflate: (output: Buffer) => Promise<Inflated>;
  /** Another member follows. */
  readonly nextMember: () => void;
  /** Gives its memory back. Never while it inflates. */
  readonly end: () => void;
}
