/** Where a time axis has its marks, and what they say, in a time zone by its IANA name. Pure. */
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

/** Making one takes longer than drawing all the marks. */
const clocks = new Map<string, Intl.DateTimeFormat>();

const clockOf = (timeZone: string): Intl.DateTimeFormat => {
  const known = clocks.get(timeZone);
  if (known !== undefined) return known;
  const date = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  const time = { hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const;
  const clock = new Intl.DateTimeFormat('en-US', { timeZone, ...date, ...time });
  clocks.set(timeZone, clock);
  return clock;
};

/** How far the zone is from UTC at a moment. */
const offsetMs = (atMs: number, timeZone: string): number => {
  if (timeZone === 'UTC') return 0;
  const shown = new Map(
    clockOf(timeZone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes): number => shown.get(type) ?? 0;
  const [year, month, day] = [part('year'), part('month'), part('day')];
  const localMs = Date.UTC(year, month - 1, day, part('hour'), part('minute'), part('second'));
  return localMs - Math.floor(atMs / SECOND) * SECOND;
};

/** The moment at which clocks of the zone show what clocks in UTC show at `localMs`. */
const momentOf = (localMs: number, timeZone: string): number =>
  localMs - offsetMs(localMs - offsetMs(localMs, timeZone), timeZone);

const partsOf = (atMs: number, timeZone: string): Parts => {
  const shown = new Date(atMs + offsetMs(atMs, timeZone));
  return {
    day: `${shown.getUTCFullYear()}-${two(shown.getUTCMonth() + 1)}-${two(shown.getUTCDate())}`,
    clock: `${two(shown.getUTCHours())}:${two(shown.getUTCMinutes())}`,
    seconds: two(shown.getUTCSeconds()),
    ms: String(shown.getUTCMilliseconds()).padStart(3, '0'),
  };
};

/** 2026-11-21 03:12:00.345 */
export const momentText = (atMs: number, timeZone: string): string => {
  const { day, clock, seconds, ms } = partsOf(atMs, timeZone);
  return `${day} ${clock}:${seconds}.${ms}`;
};

const labelOf = (atMs: number, stepMs: number, timeZone: string): string => {
  const { day, clock, seconds, ms } = partsOf(atMs, timeZone);
  if (stepMs >= DAY || (clock === '00:00' && seconds === '00' && stepMs >= SECOND)) return day;
  if (stepMs >= MINUTE) return clock;
  return stepMs >= SECOND ? `${clock}:${seconds}` : `${clock}:${seconds}.${ms}`;
};

/**
 * The first moment from this one on at which clocks of the zone show a multiple of the step. Where they are put forward or back,
 * time goes on: no steps of up to an hour are missing, and none is there again because the clock shows it again.
 */
const roundMoment = (atMs: number, stepMs: number, timeZone: string): number => {
  const offset = offsetMs(atMs, timeZone);
  const localMs = Math.ceil((atMs + offset) / stepMs) * stepMs;
  const sameOffset = localMs - offset;
  if (stepMs <= HOUR || offsetMs(sameOffset, timeZone) === offset) return sameOffset;
  return Math.max(atMs, momentOf(localMs, timeZone));
};

/** At most so many marks, at round moments of the zone. */
export const ticksOf = (window: TimeWindow, countMax: number, timeZone: string): Tick[] => {
  const least = widthOf(window) / Math.max(countMax, 1);
  const stepMs = STEPS.find((step) => step >= least) ?? Math.ceil(least / (365 * DAY)) * 365 * DAY;
  const ticks: Tick[] = [];
  for (
    let atMs = roundMoment(window.fromMs, stepMs, timeZone);
    atMs <= window.toMs;
    atMs = roundMoment(atMs + 1, stepMs, timeZone)
  )
    ticks.push({ atMs, label: labelOf(atMs, stepMs, timeZone) });
  return ticks;
};
