/**
 * What is made of the rounds' figures: medians, and how far one side is ahead of the other. Pure; knows no metric and
 * no runtime.
 */

/** Whether more of it is better (calls per second) or less (milliseconds, bytes). */
export type Better = 'less' | 'more';

export interface Comparison {
  /** Medians over the rounds. */
  readonly ours: number;
  readonly peer: number;
  /** How far our median is ahead of the peer's: above 1 is better, whichever way better is. */
  readonly ahead: number;
  /** The least and the greatest of the same ratio within one round: how far it can be trusted. */
  readonly aheadMin: number;
  readonly aheadMax: number;
}

/** The middle value, or the mean of the two in the middle; NaN of nothing. */
export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
};

/** The least value that so many per cent of them do not exceed; NaN of nothing. */
export const percentile = (values: readonly number[], percent: number): number =>
  values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil((values.length * percent) / 100) - 1)] ?? Number.NaN;

/** Above 1 when `ours` is better. */
export const aheadBy = (ours: number, peer: number, better: Better): number =>
  better === 'less' ? peer / ours : ours / peer;

/** Where there is no peer: nothing is ahead. */
export const alone = (ours: readonly number[]): Comparison => ({
  ours: median(ours),
  peer: Number.NaN,
  ahead: Number.NaN,
  aheadMin: Number.NaN,
  aheadMax: Number.NaN,
});

/** Compares figures that belong together round by round; throws unless both sides have the same, positive number. */
export const compare = (ours: readonly number[], peer: readonly number[], better: Better): Comparison => {
  if (ours.length !== peer.length || ours.length === 0) {
    throw new Error(`${ours.length} figures cannot be compared with ${peer.length}: it takes one of each per round`);
  }
  const perRound = ours.map((value, round) => aheadBy(value, peer[round] ?? Number.NaN, better));
  const [oursMedian, peerMedian] = [median(ours), median(peer)];
  return {
    ours: oursMedian,
    peer: peerMedian,
    ahead: aheadBy(oursMedian, peerMedian, better),
    aheadMin: Math.min(...perRound),
    aheadMax: Math.max(...perRound),
  };
};
