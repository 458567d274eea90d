/** Ids of simulated pods and containers: all begin alike, differ soon after, and end with a number to tell them by. */
import { AMBIGUOUS } from './model/words.ts';

const HALF = 12;

export function idOf(number: number): string {
  const digits = String(number).padStart(HALF, '0');
  return `${AMBIGUOUS}${[...digits].toReversed().join('')}${digits}`;
}

/** The beginning that it has alone. */
export const beginningOf = (id: string): string => id.slice(0, AMBIGUOUS.length + HALF);
