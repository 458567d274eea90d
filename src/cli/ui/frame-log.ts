/**
 * The frames so far, joined as they come, so that a journal that grows by a record at a time takes no more room than one that was read
 * at once; and what of them is behind the place that somebody has come to. Reads and sends nothing.
 */
import type { Frame } from '../../ui/frames.ts';

/** How far somebody has come. */
export interface Place {
  /** The last record that was looked at for them; -1: they have no frame yet. */
  readonly throughSeq: number;
  /** How many lanes they have. */
  readonly lanes: number;
}

export const BEGINNING: Place = { throughSeq: -1, lanes: 0 };

export interface FrameLog {
  readonly add: (frame: Frame) => void;
  /** What is next for them; null: nothing so far. It may have changes that they know. */
  readonly behind: (place: Place) => Frame | null;
}

const JOINED_MAX = 20_000;

interface Block {
  readonly frame: Frame;
  /** The number of its first lane. */
  readonly firstLane: number;
}

const joined = (before: Frame, after: Frame): Frame => {
  const count = before.head.count + after.head.count;
  const [times, seqs] = [new Float64Array(count), new Uint32Array(count)];
  const [lanes, kinds] = [new Uint32Array(count), new Uint8Array(count)];
  for (const [frame, at] of [[before, 0] as const, [after, before.head.count] as const]) {
    times.set(frame.times, at);
    seqs.set(frame.seqs, at);
    lanes.set(frame.lanes, at);
    kinds.set(frame.kinds, at);
  }
  const head = {
    ...after.head,
    count,
    lanes: [...before.head.lanes, ...after.head.lanes],
    // Whoever has a part of these records has to hear of the changes to it.
    changes: [...before.head.changes, ...after.head.changes],
    unreadable: [...before.head.unreadable, ...after.head.unreadable],
  };
  return { head, times, seqs, lanes, kinds };
};

/** What of a block somebody has not got. */
const rest = ({ frame, firstLane }: Block, { throughSeq, lanes }: Place): Frame => {
  const { head, times, seqs, lanes: laneOf, kinds } = frame;
  const found = seqs.findIndex((seq) => seq > throughSeq);
  const from = found < 0 ? seqs.length : found;
  return {
    head: {
      ...head,
      count: seqs.length - from,
      lanes: head.lanes.slice(Math.max(0, lanes - firstLane)),
      unreadable: head.unreadable.filter(([, last]) => last > throughSeq),
    },
    times: times.subarray(from),
    seqs: seqs.subarray(from),
    lanes: laneOf.subarray(from),
    kinds: kinds.subarray(from),
  };
};

export const createFrameLog = (): FrameLog => {
  const blocks: Block[] = [];
  let laneCount = 0;

  /** One joins the block before it that is no larger, so a record is copied a few times only, however many come one by one. */
  const settle = (): void => {
    for (;;) {
      const [before, after] = blocks.slice(-2);
      if (before === undefined || after === undefined) return;
      const [{ count: one }, { count: other }] = [before.frame.head, after.frame.head];
      if (one > other || one + other > JOINED_MAX) return;
      blocks.splice(-2, 2, { frame: joined(before.frame, after.frame), firstLane: before.firstLane });
    }
  };

  return {
    add(frame) {
      blocks.push({ frame, firstLane: laneCount });
      laneCount += frame.head.lanes.length;
      settle();
    },
    behind: (place) => {
      const block = blocks.find(({ frame }) => frame.head.throughSeq > place.throughSeq);
      return block === undefined ? null : rest(block, place);
    },
  };
};
