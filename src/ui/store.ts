/** The records that the page has, as columns in order of seq: times, seqs, lanes, kinds. Grows with each frame. No DOM. */
import type { Frame, FrameHead, Lane } from './frames.ts';

export interface Records {
  readonly count: number;
  /** Each has room for more than `count`. Times never fall. */
  readonly times: Float64Array;
  readonly seqs: Uint32Array;
  readonly laneOf: Uint32Array;
  readonly kinds: Uint8Array;
  readonly lanes: readonly Lane[];
  /** What was there when reading began is here. */
  readonly isRead: boolean;
  /** Stretches that cannot be read. */
  readonly unreadable: FrameHead['unreadable'];
  readonly throughSeq: number;
  readonly headSeq: number;
}

export interface Store {
  readonly records: () => Records;
  readonly add: (frame: Frame) => void;
}

const CAPACITY_MIN = 65_536;

/** The first position whose value is not below `wanted`; `count` when all are. */
export const lowerBound = (values: ArrayLike<number>, wanted: number, from: number, count: number): number => {
  let [low, high] = [from, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? 0) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** Where a record is; null: it is pruned, or not here yet. */
export const positionOf = ({ seqs, count }: Records, seq: number): number | null => {
  const position = lowerBound(seqs, seq, 0, count);
  return position < count && seqs[position] === seq ? position : null;
};

const grown = <T extends Float64Array | Uint32Array | Uint8Array>(column: T, larger: T): T => {
  larger.set(column);
  return larger;
};

export const createStore = (): Store => {
  let capacity = CAPACITY_MIN;
  let records = {
    count: 0,
    times: new Float64Array(capacity),
    seqs: new Uint32Array(capacity),
    laneOf: new Uint32Array(capacity),
    kinds: new Uint8Array(capacity),
    isRead: false,
    throughSeq: 0,
    headSeq: 0,
  };
  const lanes: Lane[] = [];
  const unreadable: FrameHead['unreadable'][number][] = [];
  let firstHeadSeq: number | null = null;

  const reserve = (count: number): void => {
    if (count <= capacity) return;
    while (capacity < count) capacity *= 2;
    const { times, seqs, laneOf, kinds } = records;
    records = {
      ...records,
      times: grown(times, new Float64Array(capacity)),
      seqs: grown(seqs, new Uint32Array(capacity)),
      laneOf: grown(laneOf, new Uint32Array(capacity)),
      kinds: grown(kinds, new Uint8Array(capacity)),
    };
  };

  return {
    records: () => ({ ...records, lanes, unreadable }),
    add({ head, times, seqs, lanes: laneOf, kinds }) {
      const start = records.count;
      reserve(start + head.count);
      records.times.set(times, start);
      records.seqs.set(seqs, start);
      records.laneOf.set(laneOf, start);
      records.kinds.set(kinds, start);
      lanes.push(...head.lanes);
      unreadable.push(...head.unreadable);
      firstHeadSeq ??= head.headSeq;
      records.count = start + head.count;
      records.throughSeq = head.throughSeq;
      records.headSeq = head.headSeq;
      records.isRead = head.throughSeq >= firstHeadSeq;
      for (const [seq, kind, lane] of head.changes) {
        const position = positionOf({ ...records, lanes, unreadable }, seq);
        if (position === null) continue;
        records.kinds[position] = kind;
        records.laneOf[position] = lane;
      }
    },
  };
};
