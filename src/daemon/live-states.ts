/**
 * The daemon's two states as they are held against the journal: what clients are shown, and what is decided from. The
 * second runs ahead by what is on its way to the disk, so the two are one and the same only while nothing is. Both are
 * taken in one synchronous step and hashed in slices (C17). Changes nothing.
 */
import { filter, firstValueFrom, map, merge, timer } from 'rxjs';
import { statePieces } from '../domain/turn/snapshot.ts';
import { copyState } from '../domain/model/state.ts';
import type { Engine } from '../engine/engine.ts';
import { hashOfPieces } from '../journal/slices.ts';
import type { PublishedView } from '../engine/published-view.ts';

export interface LiveStates {
  /** The record after which this was so. */
  readonly seq: number;
  /** SHA-256 of the state that clients are shown, as a snapshot writes it. */
  readonly shown: Promise<string>;
  /** The same of the state that decisions are made from; null: something was on its way to the disk. */
  readonly decidedFrom: Promise<string> | null;
}

type Shown = Pick<PublishedView, 'state' | 'seq'>;

export type HasStates = Pick<Engine, 'state' | 'isSettled'>;

export function takeStates(view: Shown, engine: HasStates): LiveStates {
  const decidedFrom = engine.isSettled() ? copyState(engine.state) : null;
  const shown = hashOfPieces(statePieces(copyState(view.state)));
  return {
    seq: view.seq(),
    shown,
    decidedFrom: decidedFrom === null ? null : shown.then(() => hashOfPieces(statePieces(decidedFrom))),
  };
}

/** As takeStates, but waits a moment for nothing to be on its way to the disk. */
export async function takeSettledStates(
  view: Shown & Pick<PublishedView, 'changes'>,
  engine: HasStates,
  waitMs: number,
): Promise<LiveStates> {
  if (engine.isSettled()) return takeStates(view, engine);
  const settled = view.changes.pipe(filter(() => engine.isSettled()));
  // Taken as it is heard: a moment later something else may be on its way.
  return firstValueFrom(merge(settled, timer(waitMs)).pipe(map(() => takeStates(view, engine))));
}
