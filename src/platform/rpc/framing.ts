/**
 * Frames on a stream of bytes: a head that says how long the body is, then the body. Cuts the stream into frames in
 * whatever pieces it arrives, and bounds what is held: the body of a frame that is too large is never collected. The
 * protocol says what a head holds (FrameForm); nothing here does I/O.
 */

/** How the frames of one protocol look. `at` is where a head begins. */
export interface FrameForm<Head> {
  readonly headBytes: number;
  /** The longest body that is sent or taken. */
  readonly bodyBytesMax: number;
  readonly writeHead: (target: Buffer, head: Head, bodyBytes: number) => void;
  readonly headOf: (source: Buffer, at: number) => Head;
  readonly bodyBytesOf: (source: Buffer, at: number) => number;
}

export interface FrameEvents<Head> {
  /** The body is a part of what arrived: to be copied by whoever keeps it for long. */
  readonly frame: (head: Head, body: Buffer) => void;
  /**
   * A body that is longer than any may be, or shorter than nothing. When this returns, the body is skipped and the next
   * frame is looked for behind it; what it throws leaves the stream of no more use.
   */
  readonly misfit: (head: Head, bodyBytes: number) => void;
}

/** Throws RangeError on a body that is too long: callers with bodies of any length ask before. */
export const encodeFrame = <Head>(form: FrameForm<Head>, head: Head, body: Uint8Array): Buffer => {
  if (body.length > form.bodyBytesMax)
    throw new RangeError(`The body of a frame has ${body.length} bytes, above the limit of ${form.bodyBytesMax}.`);
  const frame = Buffer.allocUnsafe(form.headBytes + body.length);
  form.writeHead(frame, head, body.length);
  frame.set(body, form.headBytes);
  return frame;
};

/** Takes the pieces of a stream as they come; each frame is told once, in order. Throws only what `events` throw. */
export const createFrameReader = <Head>(
  form: FrameForm<Head>,
  events: FrameEvents<Head>,
): ((chunk: Buffer) => void) => {
  const { headBytes, bodyBytesMax } = form;
  /** The beginning of a frame; empty while a body is skipped. */
  let held: Buffer[] = [];
  let heldBytes = 0;
  let wantedBytes = headBytes;
  let skipBytes = 0;

  /** Tells all that is whole, and returns where the rest begins. */
  const takeFrames = (bytes: Buffer): number => {
    let at = 0;
    wantedBytes = headBytes;
    while (bytes.length - at >= headBytes) {
      const head = form.headOf(bytes, at);
      const bodyBytes = form.bodyBytesOf(bytes, at);
      const bodyAt = at + headBytes;
      if (bodyBytes < 0 || bodyBytes > bodyBytesMax) {
        events.misfit(head, bodyBytes);
        at = Math.min(bodyAt + Math.max(0, bodyBytes), bytes.length);
        skipBytes = bodyAt + Math.max(0, bodyBytes) - at;
      } else if (bytes.length - bodyAt < bodyBytes) {
        wantedBytes = headBytes + bodyBytes;
        return at;
      } else {
        at = bodyAt + bodyBytes;
        events.frame(head, bytes.subarray(bodyAt, at));
      }
    }
    return at;
  };

  return (chunk) => {
    const skipped = Math.min(skipBytes, chunk.length);
    skipBytes -= skipped;
    const fresh = skipped === 0 ? chunk : chunk.subarray(skipped);
    if (fresh.length === 0) return;
    if (heldBytes + fresh.length < wantedBytes) {
      held.push(fresh);
      heldBytes += fresh.length;
      return;
    }
    const bytes = heldBytes === 0 ? fresh : Buffer.concat([...held, fresh], heldBytes + fresh.length);
    const rest = bytes.subarray(takeFrames(bytes));
    held = rest.length === 0 ? [] : [rest];
    heldBytes = rest.length;
  };
};
