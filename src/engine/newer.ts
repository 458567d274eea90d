/** What a newer scribe wrote, and this one may read wrongly: whether a record is such, and what to do, in words. Pure. */
import { RECORD_VERSION } from '../domain/model/records.ts';
import { DECISION_RULES, rulesOf } from '../domain/model/rules.ts';
import type { NodeState } from '../domain/model/state.ts';
import type { JournalRecord } from '../journal/types.ts';
import type { FoldedColumns } from './codec.ts';

export interface Writer {
  readonly version: string;
  /** By which rules it decides. */
  readonly rules: number;
}

/** Who wrote the last of what a state is folded from; null: nothing is. */
export const writerOf = (state: Pick<NodeState, 'facts'>): Writer | null =>
  state.facts === null ? null : { version: state.facts.version, rules: rulesOf(state) };

type Written = Pick<JournalRecord, 'type' | 'v' | 'body'>;

interface Start {
  readonly facts?: { readonly version?: unknown; readonly rules?: unknown };
}

const startIn = (body: string): Start | null => {
  try {
    return JSON.parse(body) as Start | null;
  } catch {
    return null;
  }
};

/** The daemon whose start this is; null: it is another record, does not say, or can't be read. */
export const writerIn = ({ type, body }: Written): Writer | null => {
  if (type !== 'daemon.started') return null;
  const { version, rules } = startIn(body)?.facts ?? {};
  return typeof version === 'string' ? { version, rules: typeof rules === 'number' ? rules : 1 } : null;
};

/** That of every version. */
const ANY_RECORD: Written = { type: '', v: 1, body: '' };

/** A sentence for a record, or all that its writer wrote, that this scribe does not know; null: it knows it. */
export const whyNewer = ({ type, v }: Written, writer: Writer | null): string | null => {
  const { version, rules } = writer ?? { version: 'of a later version', rules: 1 };
  const more =
    v > RECORD_VERSION
      ? `${type} of version ${v}, and this one knows version ${RECORD_VERSION}`
      : rules > DECISION_RULES
        ? `decided by rules ${rules}, and this one knows up to ${DECISION_RULES}`
        : null;
  return more === null ? null : `scribe ${version} wrote it (${more}): use scribe ${version} or later.`;
};

/** The first record of a journal that this scribe does not know, and who wrote it. */
export interface UnknownRecord {
  readonly record: FoldedColumns;
  readonly writer: Writer | null;
}

/** The same for what a state is folded from; `first`: null where every record of it is known. */
export const whyNewerIn = (first: UnknownRecord | null, state: NodeState): string | null =>
  first === null ? whyNewer(ANY_RECORD, writerOf(state)) : whyNewer(first.record, first.writer);
