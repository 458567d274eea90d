/** Times as shims tell them, made fit for records: nanoseconds since 1970 in an int64, as decimal text. */
import type { Timestamp } from '../../../wire/google/protobuf/timestamp.ts';

const nsPerMs = 1_000_000n;
const nsPerSecond = 1_000_000_000n;
const int64Max = 2n ** 63n - 1n;

/** Now, for want of a time that the shim told: in doubt an exit is dated when it was seen. */
const nowNs = (): bigint => BigInt(Date.now()) * nsPerMs;

/** A time before 1970 (shims say year 1 for "not yet") or beyond the year 2262 is no time of an exit: it gives now. */
export const exitTimeNs = (time: Timestamp | undefined): string => {
  if (time === undefined || !/^\d{1,12}$/.test(time.seconds)) return String(nowNs());
  const ns = BigInt(time.seconds) * nsPerSecond + BigInt(Math.max(0, Math.min(time.nanos, 999_999_999)));
  return String(ns > 0n && ns <= int64Max ? ns : nowNs());
};
