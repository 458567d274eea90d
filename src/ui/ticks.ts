/** Where a time axis has its marks, and what they say. Pure, but for the local time zone. */
import { type TimeWindow, widthOf } from './time-window.ts';

export interface Tick {
  readonly atMs: number;
  readonly label: string;
}

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];

/** Distances between marks that people count in. */
const STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((count) => count * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((count) => count * MINUTE),
  ...[1, 2, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14, 30, 90, 365].map((count) => count * DAY),
];

const two = (value: number): string => String(value).padStart(2, '0');

interface Parts {
  readonly day: string;
  readonly clock: string;
  readonly seconds: string;
  readonly ms: string;
}

/** How far the zone of what is shown is from UTC at a moment. */
const offsetMs = (atMs: number, isUtc: boolean): number => (isUtc ? 0 : -new Date(atMs).getTimezoneOffset() * MINUTE);

const partsOf = (atMs: number, isUtc: boolean): Parts => {
  const shown = new Date(atMs + offsetMs(atMs, isUtc));
  return {
    day: `${shown.getUTCFullYear()}-${two(shown.getUTCMonth() + 1)}-${two(shown.getUTCDate())}`,
    clock: `${two(shown.getUTCHours())}:${two(shown.getUTCMinutes())}`,
    seconds: two(shown.getUTCSeconds()),
    ms: String(shown.getUTCMilliseconds()).padStart(3, '0'),
  };
};

/** 2026-11-21 03:12:00.345 */
export const momentText = (atMs: number, isUtc: boolean): string => {
  const { day, clock, seconds, ms } = partsOf(atMs, isUtc);
  return `${day} ${clock}:${seconds}.${ms}`;
};

const labelOf = (atMs: number, stepMs: number, isUtc: boolean): string => {
  const { day, clock, seconds, ms } = partsOf(atMs, isUtc);
  if (stepMs >= DAY || (clock === '00:00' && seconds === '00' && stepMs >= SECOND)) return day;
  if (stepMs >= MINUTE) return clock;
  return stepMs >= SECOND ? `${clock}:${seconds}` : `${clock}:${seconds}.${ms}`;
};

/** At most so many marks, at round moments of the zone. */
export const ticksOf = (window: TimeWindow, countMax: number, isUtc: boolean): Tick[] => {
  const least = widthOf(window) / Math.max(countMax, 1);
  const stepMs = STEPS.find((step) => step >= least) ?? Math.ceil(least / (365 * DAY)) * 365 * DAY;
  const shiftMs = offsetMs(window.fromMs, isUtc);
  const firstMs = Math.ceil((window.fromMs + shiftMs) / stepMs) * stepMs - shiftMs;
  const count = Math.max(0, Math.floor((window.toMs - firstMs) / stepMs) + 1);
  return Array.from({ length: count }, (_, index) => {
    const atMs = firstMs + index * stepMs;
    return { atMs, label: labelOf(atMs, stepMs, isUtc) };
  });
};
