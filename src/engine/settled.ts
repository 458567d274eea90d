/**
 * Which records of a stretch leave nothing in the write state once all of it is folded: a call that was answered in it, and a
 * command in a container that ended in it as it should. A probe is four such records, and most of a node's journal is
 * probes: to read what is in them takes longer than to fold all the rest (docs/decisions/settled-records.md).
 * Goes by columns and the first letters of bodies; where those tell nothing for certain it says nothing, which is never wrong.
 *
 *   call.received ── effects.requested RunExec ── effect.ended, with a result ── call.completed
 */
import { effectId, type EffectEnded, NODE_STREAM, type RecordType } from '../domain/model/records.ts';
import { type FoldedColumns, isReadable } from './codec.ts';

const CALL_RECEIVED: RecordType = 'call.received';
export const CALL_COMPLETED: RecordType = 'call.completed';
const EFFECTS_REQUESTED: RecordType = 'effects.requested';
const EFFECT_ENDED: RecordType = 'effect.ended';
const TURN_FAILED: RecordType = 'turn.failed';
const RUN_EXEC: EffectEnded['kind'] = 'RunExec';

/** How JSON.stringify writes the bodies of both. In a text within one its quotation marks would be escaped. */
const EXEC_REQUESTED = `{"effects":[{"kind":"${RUN_EXEC}",`;
const ANOTHER_EFFECT = '},{"kind":"';
const execEnded = (requestedSeq: number): string =>
  `{"effect":"${effectId(requestedSeq, 0)}","kind":"${RUN_EXEC}","result":{`;

const asksForExecAlone = ({ type, body }: FoldedColumns): boolean =>
  type === EFFECTS_REQUESTED && body.startsWith(EXEC_REQUESTED) && !body.includes(ANOTHER_EFFECT);

/** Commands that were begun in containers, by the container's stream: of those to which nothing else has happened since. */
const createBegunExecs = () => {
  const begun = new Map<string, number[]>();
  return {
    begin: ({ stream, seq }: FoldedColumns): void => {
      const seqs = begun.get(stream);
      if (seqs === undefined) begun.set(stream, [seq]);
      else seqs.push(seq);
    },
    /** The request that this is the end of; undefined: of none of these, or not as it should have ended. */
    end: ({ stream, body }: FoldedColumns): number | undefined => {
      const seqs = begun.get(stream) ?? [];
      const index = seqs.findIndex((seq) => body.startsWith(execEnded(seq)));
      return index < 0 ? undefined : seqs.splice(index, 1)[0];
    },
    forget: (stream: string): void => void begun.delete(stream),
    clear: (): void => begun.clear(),
  };
};

/** What may change anything, or is of a scribe that may mean anything by it. */
const isBarrier = (record: FoldedColumns): boolean =>
  record.stream === NODE_STREAM || record.type === TURN_FAILED || !isReadable(record);

/** Seqs of records that can be left out where all of these are folded, and nobody looks at the state between them. */
export const settledIn = (records: readonly FoldedColumns[]): ReadonlySet<number> => {
  const settled = new Set<number>();
  const calls = new Set<number>();
  const execs = createBegunExecs();
  const note = (record: FoldedColumns): void => {
    const { seq, type, stream, call } = record;
    if (type === CALL_RECEIVED) return void calls.add(seq);
    if (type === CALL_COMPLETED) {
      if (call !== null && calls.delete(call)) settled.add(call).add(seq);
      return;
    }
    if (asksForExecAlone(record)) return execs.begin(record);
    const requested = type === EFFECT_ENDED ? execs.end(record) : undefined;
    if (requested === undefined) execs.forget(stream);
    else settled.add(requested).add(seq);
  };
  for (const record of records) {
    if (isBarrier(record)) {
      calls.clear();
      execs.clear();
    } else note(record);
  }
  return settled;
};
