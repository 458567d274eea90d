/** Has Node's debugger stop where a decision is about to be made. */
import inspector from 'node:inspector';
import type { Replayed } from '../../engine/replay.ts';
import { type Io, write } from '../io.ts';
import { type Break, differs } from './break-on.ts';
import { decisionsOf } from './run.ts';
import type { Source, Unreadable } from './source.ts';

/** The first decision to stop at, found without a debugger; null: there is none. */
export const firstAt = (
  source: Source,
  toSeq: number,
  stop: Break = differs,
  unreadable: Unreadable = () => undefined,
): Replayed | null => {
  for (const replayed of decisionsOf(source, { toSeq, unreadable })) if (stop(replayed)) return replayed;
  return null;
};

/** Waits for a debugger and decides up to this record; the debugger stops in front of the decision on it. */
export const inspectAt = async (source: Source, seq: number, { stderr }: Io): Promise<void> => {
  if (inspector.url() === undefined) inspector.open(0, '127.0.0.1');
  await write(stderr, `scribe: The decision on record ${seq} waits for a debugger at ${inspector.url() ?? ''}\n`);
  await write(stderr, 'scribe: chrome://inspect finds it, as do editors; step into decide.\n');
  inspector.waitForDebugger();
  const before = (input: Replayed['input']): void => {
    // The one place where stopping is the point. Step out, then into decide().
    if (input.seq === seq) debugger;
  };
  for (const { input } of decisionsOf(source, { toSeq: seq, before })) if (input.seq === seq) break;
  inspector.close();
};
