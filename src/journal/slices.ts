/**
 * Work on the daemon's own thread that takes longer than others may wait, done in slices: between two of them the loop
 * serves whoever came meanwhile (C17). The caller sees to it that the data does not change on the way.
 */
import { createHash } from 'node:crypto';
import { setImmediate as otherTurns } from 'node:timers/promises';

/** As long as a call may have to wait behind a slice without anybody noticing. */
const SLICE_MS = 4;

export interface Pace {
  /** A slice ends with the first piece after this long. */
  readonly sliceMs: number;
  readonly nowMs: () => number;
  /** Lets others have their turn. */
  readonly pause: () => Promise<void>;
}

const ownPace: Pace = {
  sliceMs: SLICE_MS,
  nowMs: () => performance.now(),
  pause: () => otherTurns(),
};

/** SHA-256, in hex, of a text that is made piece by piece, as hashOfState gives it for the whole. */
export const hashOfPieces = async (pieces: Iterable<string>, pace: Pace = ownPace): Promise<string> => {
  const { sliceMs, nowMs, pause } = pace;
  const hash = createHash('sha256');
  let until = nowMs() + sliceMs;
  for (const piece of pieces) {
    hash.update(piece);
    if (nowMs() < until) continue;
    await pause();
    until = nowMs() + sliceMs;
  }
  return hash.digest('hex');
};
