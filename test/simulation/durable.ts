/**
 * The durable records as checks look at them: each is parsed once, when it is first seen, with an index of what was
 * asked for and of whose end is known. Keeps what pruning takes from the journal.
 */
import { type EffectEnded, type Intent, type Sequenced, subjectOf } from '../../src/domain/model/records.ts';
import { initialState, type NodeState } from '../../src/domain/model/state.ts';
import { evolve } from '../../src/domain/turn/evolve.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { isOwnType } from '../../src/journal/own-records.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import type { Disk } from './disk.ts';

export interface Durable {
  /** Takes in what has become durable since. */
  readonly sync: () => void;
  readonly records: readonly JournalRecord[];
  /** As the domain reads them; null: a record that is the journal's own. */
  readonly parsed: readonly (Sequenced | null)[];
  /** All of them folded, from the first on. */
  readonly state: Readonly<NodeState>;
  readonly hasIntent: (stream: string, kind: Intent['kind']) => boolean;
  /** The task of a container or sandbox has ended, or its end can't be known. */
  readonly hasEnd: (id: string) => boolean;
}

const ENDS: readonly string[] = ['task.exited', 'container.exited', 'container.lost', 'shim.lost', 'sandbox.failed'];

const tellsEnd = (record: Sequenced): boolean => {
  if (ENDS.includes(record.type)) return true;
  if (record.type === 'turn.failed')
    return ENDS.includes(record.body.input.type) || tellsOutcome(record.body.input.body);
  if (record.type !== 'effect.ended') return false;
  return tellsOutcome(record.body);
};

const tellsOutcome = (body: unknown): boolean => {
  const { kind, failure, result } = body as Partial<EffectEnded>;
  return failure !== undefined || (kind === 'ReconnectShim' && hasExit(result));
};

const hasExit = (result: unknown): boolean => JSON.stringify(result).includes('"exit"');

/** `hear` is told of each record that the domain knows, once it is durable. */
export function followDurable(
  { contents, look }: Pick<Disk, 'contents' | 'look'>,
  hear: (record: Sequenced) => void,
): Durable {
  const { rows } = contents;
  const records: JournalRecord[] = [];
  const parsed: (Sequenced | null)[] = [];
  const state = initialState();
  const intents = new Set<string>();
  const ends = new Set<string>();

  function take(record: JournalRecord): void {
    const read = isOwnType(record.type) ? null : fromJournalRecord(record);
    records.push(record);
    parsed.push(read);
    if (read === null) return;
    evolve(state, read);
    hear(read);
    if (read.type === 'effects.requested')
      for (const { kind } of read.body.effects) intents.add(`${kind} ${read.stream}`);
    if (tellsEnd(read)) ends.add(subjectOf(read.stream).id);
  }

  return {
    records,
    parsed,
    state,
    sync() {
      look();
      for (let index = records.length; index < rows.length; index += 1) {
        const record = rows[index]?.record;
        if (record === null || record === undefined) throw new Error(`Record ${index + 1} was pruned unseen.`);
        take(record);
      }
    },
    hasIntent: (stream, kind) => intents.has(`${kind} ${stream}`),
    hasEnd: (id) => ends.has(id),
  };
}
