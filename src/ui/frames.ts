/**
 * How records travel to the page: frames of columns, written once by the server and read by the browser. A frame is the
 * length of the rest (4 bytes), the length of its head (4), the head as JSON, filled with spaces to a multiple of 8 with
 * what is before it, and then the columns: times (float64, milliseconds since the epoch), seqs and lanes (uint32), kinds
 * (uint8). All little-endian, as every machine that runs this is. Pure, in both.
 */

export const LANE_KINDS = ['node', 'images', 'pod', 'container'] as const;

/** A line of the picture: numbered in the order in which they come. */
export interface Lane {
  readonly kind: (typeof LANE_KINDS)[number];
  /** Of the pod or container; '' for the others. */
  readonly id: string;
  readonly label: string;
  /** Of a container: its pod's lane; null: it has none. */
  readonly parent: number | null;
}

export interface FrameHead {
  readonly count: number;
  /** Lanes that begin with this frame. */
  readonly lanes: readonly Lane[];
  /** Records of earlier frames that are of another kind, or on another lane, by now. */
  readonly changes: readonly (readonly [seq: number, kind: number, lane: number])[];
  /** Records that nobody can read, for the file is damaged: each stretch by its first and last. */
  readonly unreadable: readonly (readonly [firstSeq: number, lastSeq: number])[];
  /** The last record that was there when reading began, and the last one that was looked at. */
  readonly headSeq: number;
  readonly throughSeq: number;
  /** Of a frame that is the last one, and has nothing else: why nothing comes any more, in sentences. */
  readonly ended?: string;
}

export interface Frame {
  readonly head: FrameHead;
  /** Never falls, from frame to frame: a clock that was set back makes no records of before. */
  readonly times: Float64Array;
  readonly seqs: Uint32Array;
  readonly lanes: Uint32Array;
  readonly kinds: Uint8Array;
}

/** So often the server sends a beat, which is a frame of no length: whoever hears nothing for longer has lost the way to it. */
export const BEAT_EVERY_MS = 10_000;
export const BEAT = new Uint8Array(4);

const WORD = BEAT.length;
const ALIGNMENT = 8;
const BYTES_PER_RECORD = 8 + 4 + 4 + 1;

const columnsAt = (headBytes: number): number => Math.ceil((2 * WORD + headBytes) / ALIGNMENT) * ALIGNMENT;

export const encodeFrame = ({ head, times, seqs, lanes, kinds }: Frame): Uint8Array => {
  const text = new TextEncoder().encode(JSON.stringify(head));
  const start = columnsAt(text.length);
  const { count } = head;
  const bytes = new Uint8Array(start + count * BYTES_PER_RECORD).fill(0x20, 0, start);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, bytes.length - WORD, true);
  view.setUint32(WORD, start - 2 * WORD, true);
  bytes.set(text, 2 * WORD);
  let at = start;
  for (const column of [times, seqs, lanes, kinds]) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), at);
    at += column.byteLength;
  }
  return bytes;
};

/** The last frame for whoever has come to this record. */
export const lastFrame = (throughSeq: number, ended: string): Frame => ({
  head: { count: 0, lanes: [], changes: [], unreadable: [], headSeq: throughSeq, throughSeq, ended },
  times: new Float64Array(),
  seqs: new Uint32Array(),
  lanes: new Uint32Array(),
  kinds: new Uint8Array(),
});

/** @param bytes  a whole frame, in a buffer of its own */
const decodeFrame = (bytes: Uint8Array<ArrayBuffer>): Frame => {
  const headBytes = new DataView(bytes.buffer).getUint32(WORD, true);
  const start = 2 * WORD + headBytes;
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(2 * WORD, start))) as FrameHead;
  const { count } = head;
  const seqsAt = start + 8 * count;
  const lanesAt = seqsAt + 4 * count;
  return {
    head,
    times: new Float64Array(bytes.buffer, start, count),
    seqs: new Uint32Array(bytes.buffer, seqsAt, count),
    lanes: new Uint32Array(bytes.buffer, lanesAt, count),
    kinds: new Uint8Array(bytes.buffer, lanesAt + 4 * count, count),
  };
};

/** Takes bytes as they come and gives the frames that are whole; beats are none. */
export const createFrameReader = (): ((chunk: Uint8Array) => Frame[]) => {
  let held: Uint8Array[] = [];
  let heldBytes = 0;

  /** The first so many bytes of what is held, in a buffer of their own. */
  const take = (count: number, leaves: boolean): Uint8Array<ArrayBuffer> => {
    const taken = new Uint8Array(count);
    let at = 0;
    const rest: Uint8Array[] = [];
    for (const piece of held) {
      const wanted = piece.subarray(0, count - at);
      taken.set(wanted, at);
      at += wanted.length;
      if (wanted.length < piece.length) rest.push(piece.subarray(wanted.length));
    }
    if (!leaves) {
      held = rest;
      heldBytes -= count;
    }
    return taken;
  };

  return (chunk) => {
    held.push(chunk);
    heldBytes += chunk.length;
    const frames: Frame[] = [];
    while (heldBytes >= WORD) {
      const bytes = new DataView(take(WORD, true).buffer).getUint32(0, true) + WORD;
      if (heldBytes < bytes) break;
      const whole = take(bytes, false);
      if (bytes > WORD) frames.push(decodeFrame(whole));
    }
    return frames;
  };
};
