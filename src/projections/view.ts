/**
 * What clients are shown: the state folded from durable records only, so that nobody sees what a crash could take
 * back (C1). The same evolve as the write state's, over the same records, a commit later. No setter: apply is the
 * only way in. Counters tell caches what has changed.
 */
import { evolve } from '../domain/turn/evolve.ts';
import { type Sequenced, subjectOf } from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';

export interface Versions {
  readonly sandboxes: number;
  readonly containers: number;
  readonly images: number;
}

export interface View {
  readonly state: Readonly<NodeState>;
  /** seq of the last record applied. */
  readonly seq: () => number;
  /** Each number grows with every change of its kind of object. */
  readonly versions: () => Versions;
  readonly apply: (records: readonly Sequenced[]) => void;
}

/** `state` is folded up to `seq` and belongs to the view from here on. */
export function createView(state: NodeState, seq: number): View {
  let last = seq;
  let sandboxes = 0;
  let containers = 0;
  let images = 0;

  function count(record: Sequenced): void {
    const { kind } = subjectOf(record.stream);
    // These touch every object, the second where it stands for the first.
    const all = record.type === 'daemon.started' || record.type === 'turn.failed';
    if (all || kind === 'sandbox') sandboxes += 1;
    if (all || kind === 'container') containers += 1;
    if (all || kind === 'image') images += 1;
  }

  return {
    state,
    seq: () => last,
    versions: () => ({ sandboxes, containers, images }),
    apply(records) {
      for (const record of records) {
        evolve(state, record);
        count(record);
        last = record.seq;
      }
    },
  };
}
