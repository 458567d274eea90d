/** A journal decided again whole: what differs, what it folds to, and how much was checked. */
import { hash } from 'node:crypto';
import type { Difference } from '../../src/domain/turn/differences.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import { initialState, type NodeState } from '../../src/domain/model/state.ts';
import { replay, type ReplayOptions } from '../../src/engine/replay.ts';

/** As the daemon has it. */
export const digestOf = (text: string): string => hash('sha256', text);

export interface Redecided {
  /** After the last record. */
  readonly state: NodeState;
  readonly decisions: number;
  readonly requests: number;
  readonly differences: readonly Difference[];
}

export function redecided(records: Iterable<Sequenced>, options: ReplayOptions = {}): Redecided {
  const state = options.start ?? initialState();
  const differences: Difference[] = [];
  let [decisions, requests] = [0, 0];
  for (const replayed of replay(records, { ...options, start: state })) {
    decisions += 1;
    requests += replayed.requestsChecked;
    differences.push(...replayed.differences);
  }
  return { state, decisions, requests, differences };
}
