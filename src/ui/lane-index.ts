/**
 * What is shown, by lane and by tone, so that each frame of a picture is made by halving and not by looking at every
 * record. Made anew when records come or others are chosen: a few passes over columns. Pure.
 */
import { type Kind, KINDS, kindNumber, kindOf, isTold, TONE_NUMBERS, TONES, type Tone } from './kinds.ts';
import { lowerBound, type Records } from './store.ts';
import type { TimeWindow } from './time-window.ts';

/** Positions of records by lane, in order: those of lane l are from starts[l] to before starts[l + 1]. */
export interface ByLane {
  readonly starts: Uint32Array;
  readonly positions: Uint32Array;
  /** The times of these positions. */
  readonly times: Float64Array;
}

/** The life of what a lane stands for, in milliseconds since the epoch; NaN: not recorded. */
export interface Lives {
  readonly firstMs: Float64Array;
  readonly lastMs: Float64Array;
  readonly beganMs: Float64Array;
  readonly endedMs: Float64Array;
  /** 1: it is gone. */
  readonly isGone: Uint8Array;
  /** 1: it ended badly. */
  readonly isBad: Uint8Array;
}

export interface LaneIndex {
  readonly shown: ByLane;
  /** Those that went wrong, again. */
  readonly wrong: ByLane;
  /** Times of each tone, in order. */
  readonly tones: Readonly<Record<Tone, Float64Array>>;
  /** Positions of what has a row in a list, in order. */
  readonly told: Uint32Array;
  readonly lives: Lives;
  /** Lanes as they stand one below the other: a pod, then its containers. */
  readonly order: Uint32Array;
}

type IsShown = (position: number) => boolean;

const byLane = ({ count, laneOf, times, lanes }: Records, isShown: IsShown): ByLane => {
  const starts = new Uint32Array(lanes.length + 1);
  for (let position = 0; position < count; position += 1)
    if (isShown(position)) starts[(laneOf[position] ?? 0) + 1] = (starts[(laneOf[position] ?? 0) + 1] ?? 0) + 1;
  for (let lane = 0; lane < lanes.length; lane += 1) starts[lane + 1] = (starts[lane + 1] ?? 0) + (starts[lane] ?? 0);
  const total = starts[lanes.length] ?? 0;
  const [positions, sorted, next] = [new Uint32Array(total), new Float64Array(total), starts.slice()];
  for (let position = 0; position < count; position += 1) {
    if (!isShown(position)) continue;
    const lane = laneOf[position] ?? 0;
    const at = next[lane] ?? 0;
    positions[at] = position;
    sorted[at] = times[position] ?? 0;
    next[lane] = at + 1;
  }
  return { starts, positions, times: sorted };
};

const [BEGIN, END, REMOVAL, EXIT, FAILED_EXIT] = (['begin', 'end', 'removal', 'exit', 'failed exit'] as const).map(
  kindNumber,
);

const livesOf = ({ count, laneOf, times, kinds, lanes }: Records): Lives => {
  const none = (): Float64Array => new Float64Array(lanes.length).fill(Number.NaN);
  const lives = { firstMs: none(), lastMs: none(), beganMs: none(), endedMs: none() };
  const [isGone, isBad] = [new Uint8Array(lanes.length), new Uint8Array(lanes.length)];
  for (let position = 0; position < count; position += 1) {
    const lane = laneOf[position] ?? 0;
    const [atMs, kind] = [times[position] ?? 0, kinds[position]];
    if (Number.isNaN(lives.firstMs[lane] ?? 0)) lives.firstMs[lane] = atMs;
    lives.lastMs[lane] = atMs;
    if (kind === BEGIN) lives.beganMs[lane] = atMs;
    else if (kind === END || kind === EXIT || kind === FAILED_EXIT) lives.endedMs[lane] = atMs;
    else if (kind === REMOVAL) isGone[lane] = 1;
    if (kind === FAILED_EXIT) isBad[lane] = 1;
  }
  return { ...lives, isGone, isBad };
};

const orderOf = ({ lanes }: Records): Uint32Array => {
  const children = new Map<number, number[]>();
  lanes.forEach(({ parent }, lane) => {
    if (parent === null) return;
    const known = children.get(parent);
    if (known === undefined) children.set(parent, [lane]);
    else known.push(lane);
  });
  return Uint32Array.from(
    lanes.flatMap(({ parent }, lane) => (parent === null ? [lane, ...(children.get(lane) ?? [])] : [])),
  );
};

const IS_TOLD: readonly boolean[] = KINDS.map((_, number) => isTold(kindOf(number)));
const WRONG = TONES.indexOf('wrong');
const STEP = TONES.indexOf('step');

/** @param matches  seqs of what the filter chose; null: there is none */
export const indexOf = (records: Records, matches: ReadonlySet<number> | null, withSteps: boolean): LaneIndex => {
  const { count, times, seqs, kinds } = records;
  const toneAt = (position: number): number => TONE_NUMBERS[kinds[position] ?? 0] ?? STEP;
  const isShown: IsShown = (position) =>
    (matches === null || matches.has(seqs[position] ?? 0)) && (withSteps || toneAt(position) !== STEP);
  const ofTones = TONES.map(() => new Float64Array(count));
  const counts = TONES.map(() => 0);
  const told = new Uint32Array(count);
  let toldCount = 0;
  for (let position = 0; position < count; position += 1) {
    if (!isShown(position)) continue;
    const tone = toneAt(position);
    const at = counts[tone] ?? 0;
    const ofTone = ofTones[tone];
    if (ofTone !== undefined) ofTone[at] = times[position] ?? 0;
    counts[tone] = at + 1;
    if (IS_TOLD[kinds[position] ?? 0] === true) told[toldCount++] = position;
  }
  const timesOf = (tone: Tone): Float64Array => {
    const number = TONES.indexOf(tone);
    return (ofTones[number] ?? new Float64Array()).slice(0, counts[number] ?? 0);
  };
  return {
    shown: byLane(records, isShown),
    wrong: byLane(records, (position) => toneAt(position) === WRONG && isShown(position)),
    tones: { wrong: timesOf('wrong'), call: timesOf('call'), event: timesOf('event'), step: timesOf('step') },
    told: told.slice(0, toldCount),
    lives: livesOf(records),
    order: orderOf(records),
  };
};

/** Where a lane's records of a stretch of time are in `positions`. */
export const stretchOf = (
  { starts, times }: ByLane,
  lane: number,
  fromMs: number,
  toMs: number,
): readonly [from: number, to: number] => {
  const [start, end] = [starts[lane] ?? 0, starts[lane + 1] ?? 0];
  const from = lowerBound(times, fromMs, start, end);
  return [from, lowerBound(times, toMs, from, end)];
};

/** What a list has to tell of a window: so many of the newest, newest first, of how many. */
export const toldIn = (
  { times, seqs, kinds, count }: Pick<Records, 'times' | 'seqs' | 'kinds' | 'count'>,
  { told }: LaneIndex,
  { fromMs, toMs }: TimeWindow,
  countMax: number,
): { readonly newest: { readonly seq: number; readonly kind: Kind }[]; readonly total: number } => {
  const from = lowerBound(told, lowerBound(times, fromMs, 0, count), 0, told.length);
  const to = lowerBound(told, lowerBound(times, toMs, 0, count), from, told.length);
  const newest = Array.from(told.subarray(Math.max(from, to - countMax), to)).toReversed();
  const listed = newest.map((position) => ({ seq: seqs[position] ?? 0, kind: kindOf(kinds[position] ?? 0) }));
  return { newest: listed, total: to - from };
};
