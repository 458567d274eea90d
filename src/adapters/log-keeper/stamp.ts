/**
 * Writes the time in front of log records: RFC 3339 in UTC with nine digits of a second, straight into bytes. The
 * date is formatted once per second; the digits behind it are counted up in place. Must allocate nothing per record.
 */

/** Bytes of "2006-01-02T15:04:05.000000000Z". */
export const STAMP_BYTES = 30;
const FRACTION_AT = 20;
const FRACTION_DIGITS = 9;
const DIGIT_0 = 48;
const DIGIT_9 = 57;
const NS_PER_SECOND = 1_000_000_000;
const NS_PER_MS = 1_000_000;
const MS_PER_SECOND = 1000;
/** The wall clock counts whole milliseconds here, so a smaller difference than this is no step of it. */
const STEP_MS = 2;
/** A clock set back by more than this is believed; by less, time stands still until it has caught up. */
const BACKWARDS_MS = 1000;

/** Date.now and performance.now, or what a test puts in their place; both in milliseconds. */
export interface StampClock {
  readonly wallMs: () => number;
  readonly monoMs: () => number;
}

export const systemClock: StampClock = { wallMs: () => Date.now(), monoMs: () => performance.now() };

export interface Stamp {
  /** Puts the present time at the start of `header`. */
  readonly take: () => void;
  /** Makes it one nanosecond later: no two records have the same time, and their times sort as they were written. */
  readonly advance: () => void;
}

/**
 * A stamp at the first STAMP_BYTES of `header`. Never gives the same time twice and never goes back, unless the wall
 * clock is set back by more than a second.
 */
export const createStamp = (header: Uint8Array, clock: StampClock): Stamp => {
  // Wall time is baseSeconds + (offsetMs + monotonic time): small numbers, which doubles hold to the nanosecond.
  const baseSeconds = Math.floor(clock.wallMs() / MS_PER_SECOND);
  let offsetMs = Number.NEGATIVE_INFINITY;
  let shownSeconds = 0;
  let nanos = 0;

  const show = (seconds: number): void => {
    const text = new Date(seconds * MS_PER_SECOND).toISOString();
    for (let at = 0; at < FRACTION_AT; at += 1) header[at] = text.charCodeAt(at);
    header[STAMP_BYTES - 1] = 'Z'.charCodeAt(0);
    shownSeconds = seconds;
  };

  const showNanos = (): void => {
    let rest = nanos;
    for (let at = FRACTION_AT + FRACTION_DIGITS - 1; at >= FRACTION_AT; at -= 1) {
      header[at] = DIGIT_0 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
  };

  const set = (seconds: number, newNanos: number): void => {
    if (seconds !== shownSeconds) show(seconds);
    nanos = newNanos;
    showNanos();
  };

  const advance = (): void => {
    nanos += 1;
    if (nanos === NS_PER_SECOND) {
      set(shownSeconds + 1, 0);
      return;
    }
    let at = FRACTION_AT + FRACTION_DIGITS - 1;
    while (header[at] === DIGIT_9) {
      header[at] = DIGIT_0;
      at -= 1;
    }
    header[at] = (header[at] ?? DIGIT_0) + 1;
  };

  const take = (): void => {
    const monoMs = clock.monoMs();
    const candidateMs = clock.wallMs() - baseSeconds * MS_PER_SECOND - monoMs;
    // Whole milliseconds are always a little behind, so the greatest offset seen is the nearest to the truth.
    if (candidateMs > offsetMs || candidateMs < offsetMs - STEP_MS) offsetMs = candidateMs;
    const nowMs = offsetMs + monoMs;
    const wholeSeconds = Math.floor(nowMs / MS_PER_SECOND);
    const seconds = baseSeconds + wholeSeconds;
    const newNanos = Math.floor((nowMs - wholeSeconds * MS_PER_SECOND) * NS_PER_MS);
    const aheadMs = (shownSeconds - seconds) * MS_PER_SECOND + (nanos - newNanos) / NS_PER_MS;
    if (aheadMs < 0 || aheadMs > BACKWARDS_MS) set(seconds, newNanos);
    else advance();
  };

  return { take, advance };
};
