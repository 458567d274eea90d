/** What the page says of what is in view, in words. Pure. */
import { kindOf } from './kinds.ts';
import type { FrameHead } from './frames.ts';
import type { Records } from './store.ts';
import { momentText } from './ticks.ts';
import type { TimeWindow } from './time-window.ts';

/** "1 lane", "1,204 lanes" */
export const countText = (count: number, one: string, many: string): string =>
  `${count.toLocaleString('en-US')} ${count === 1 ? one : many}`;

export const toldText = (count: number): string => countText(count, 'call or event', 'calls and events');

/** What steers or turns text around is shown as JSON escapes it. */
export const escaped = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u2028\u2029\p{Bidi_Control}]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`,
  );

const STRETCHES_TOLD_MAX = 3;

/** Which records are missing because the file is damaged, and what says more; '' for none. */
export const unreadableText = (stretches: FrameHead['unreadable']): string => {
  if (stretches.length === 0) return '';
  const told = stretches.slice(0, STRETCHES_TOLD_MAX).map(([first, last]) => {
    const [from, to] = [first.toLocaleString('en-US'), last.toLocaleString('en-US')];
    return first === last ? from : `${from} to ${to}`;
  });
  const more = stretches.length - told.length;
  const rest = more === 0 ? '' : ` and ${countText(more, 'more stretch', 'more stretches')}`;
  return `Not shown, for SQLite cannot read them: records ${told.join(', ')}${rest}. scribe verify says what is damaged.`;
};

export interface InView {
  readonly window: TimeWindow;
  readonly timeZone: string;
  readonly told: number;
  readonly lanes: number;
}

export const statusText = (
  { count, isRead, throughSeq, unreadable }: Pick<Records, 'count' | 'isRead' | 'throughSeq' | 'unreadable'>,
  { window, timeZone, told, lanes }: InView,
): string => {
  const missing = unreadableText(unreadable);
  if (count === 0) return !isRead ? 'Reading.' : missing || 'There are no records yet.';
  const span = `${momentText(window.fromMs, timeZone)} to ${momentText(window.toMs, timeZone)} ${timeZone}`;
  const pruned = throughSeq - count - unreadable.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  return [
    `${span}: ${toldText(told)}, ${countText(lanes, 'lane', 'lanes')}.`,
    pruned > 0 ? `${countText(pruned, 'record is', 'records are')} pruned.` : '',
    missing,
    isRead ? '' : `Reading: ${throughSeq.toLocaleString('en-US')} records so far.`,
  ]
    .filter(Boolean)
    .join(' ');
};

/** A container with its pod. */
const laneText = ({ lanes }: Records, lane: number): string => {
  const { label = '', parent = null } = lanes[lane] ?? {};
  return parent === null ? label : `${lanes[parent]?.label ?? ''} ${label}`;
};

export const recordText = (records: Records, position: number, timeZone: string): string => {
  const kind = kindOf(records.kinds[position] ?? 0);
  const moment = momentText(records.times[position] ?? 0, timeZone);
  return `${laneText(records, records.laneOf[position] ?? 0)}: ${kind}, record ${records.seqs[position]}, ${moment}`;
};

export const rowText = ({ lanes }: Pick<Records, 'lanes'>, lane: number): string => {
  const { kind = '', label = '', parent = null } = lanes[lane] ?? {};
  // What has no name is called after its kind already.
  const name = label === kind || label.startsWith(`${kind} `) ? label : `${kind} ${label}`;
  return parent === null ? name : `${name} of ${lanes[parent]?.label ?? ''}`;
};
