/**
 * Answers what the page asks of single records: what one says, what led to it (as `scribe why`), what the node was then
 * (as `scribe at`), and rows as `scribe history` has them. Reads a journal that is shown at a level: everything behind
 * `shownReader` sees no more of a body than that. Keeps the state of the last moment that was asked about.
 */
import { subjectOf } from '../../domain/model/records.ts';
import { openReader } from '../../journal/open.ts';
import type { AtAnswer, EntryRow, RecordAnswer, WhyAnswer } from '../../ui/answers.ts';
import { failure } from '../command.ts';
import { unlessDamaged } from '../damage.ts';
import { bodyAt, type Level } from '../export/level.ts';
import { duration, type ShowTime } from '../format.ts';
import { createCollector, type Entry } from '../history/entries.ts';
import { createNames, labelOf, recordOf } from '../history/names.ts';
import { rowsOf } from '../history/rows.ts';
import { COLUMNS, listed } from '../past/rows.ts';
import { type PastState, stateAt } from '../past/state.ts';
import { columnsOf } from '../record-columns.ts';
import { thingFilterOf } from '../things.ts';
import { explain } from '../why/explain.ts';
import { findRecord, type Found } from '../why/find.ts';
import { createRecords } from '../why/records.ts';
import { shownReader, shownState } from './redact.ts';
import { shownText } from './shown-text.ts';

export interface Questions {
  readonly record: (seq: number) => RecordAnswer;
  readonly why: (seq: number) => WhyAnswer;
  /** The whole node, or one pod of it. */
  readonly at: (seq: number, podSandboxId: string | null) => AtAnswer;
  /** Those that are pruned, or of which SQLite cannot read all that a row is made of, are missing. */
  readonly entries: (seqs: readonly number[]) => EntryRow[];
  readonly close: () => void;
}

export const openQuestions = (path: string, level: Level, showTime: ShowTime): Questions => {
  const whole = openReader(path);
  const reader = shownReader(whole, level);
  // Names are shown at every level.
  const names = createNames(whole);
  let past: PastState | null = null;

  const pastAt = (seq: number): PastState => {
    if (past?.seq === seq) return past;
    const folded = stateAt(path, whole, { kind: 'record', seq });
    past = { ...folded, state: shownState(level, folded.state) };
    return past;
  };

  /** The call that a record begins or ends, or the record by itself. */
  const entryOf = (seq: number): Exclude<Entry, { kind: 'pruned' }> | null => {
    const record = recordOf(reader, seq);
    if (record === undefined) return null;
    if (record.type === 'call.completed' && record.call !== null && record.call !== seq) return entryOf(record.call);
    if (record.type !== 'call.received') return { kind: 'event', record };
    const collector = createCollector(false, seq);
    collector.take(record);
    for (const place of reader.placesOfCall(seq)) {
      const other = place.seq === seq ? undefined : recordOf(reader, place.seq);
      if (other !== undefined) collector.takeOutside(other);
    }
    const [entry] = collector.finish(seq);
    return entry === undefined || entry.kind === 'pruned' ? null : entry;
  };

  const rowOf = (seq: number): EntryRow | null => {
    const entry = entryOf(seq);
    const [row] = entry === null ? [] : rowsOf(names, showTime, entry, () => null);
    if (row === undefined) return null;
    const [time, what, ...others] = row.cells;
    const [object = '', caller = '', took = '', outcome = ''] = others.map(shownText);
    return { seq, time, what, object, caller, took, outcome, style: row.style };
  };

  /** By its name, which records of its own tell; by its stream where those cannot be read. */
  const labelIn = (stream: string): string => unlessDamaged(() => labelOf(names, stream)) ?? stream;

  const known = (seq: number) => {
    const record = recordOf(reader, seq);
    if (record === undefined) throw failure(`There is no record ${seq}: it is pruned, or not written yet.`);
    return record;
  };

  /** What is explained of a record: its call, or the thing that it is about as it was then. */
  const meantBy = (found: Found): Found => {
    if (found.kind !== 'record') return found;
    const { kind } = subjectOf(found.event.stream);
    return kind === 'sandbox' || kind === 'container' || kind === 'image'
      ? { kind: 'thing', stream: found.event.stream }
      : found;
  };

  return {
    record: (seq) => {
      const record = known(seq);
      const { time, type, v, stream, cause, call, bodyHash, hash } = columnsOf(record, reader.hashesOf(seq));
      return {
        ...{ seq, time, v, cause, call },
        type: shownText(type),
        stream: shownText(stream),
        object: shownText(labelIn(stream)),
        bodyHash: bodyHash ?? '',
        hash: hash ?? '',
        body: bodyAt('request-response', record),
        row: unlessDamaged(() => rowOf(seq)),
      };
    },
    why: (seq) => {
      known(seq);
      const { state, atNs } = pastAt(seq);
      const headSeq = reader.headSeq();
      // A call is explained with its end, which came later.
      const isCall = known(seq).type === 'call.received';
      const records = createRecords(reader, isCall ? headSeq : seq);
      const nowNs = isCall ? (recordOf(reader, headSeq)?.atNs ?? atNs) : atNs;
      const about = { reader, records, names, state, nowNs };
      const answer = explain(about, meantBy(findRecord(about, seq)), String(seq));
      if (answer === null) throw failure(`Nothing explains record ${seq}.`);
      return {
        headline: shownText(answer.headline),
        facts: answer.facts.map(({ name, text }) => ({ name, text: shownText(text) })),
        chain: answer.chain.map(({ seq: link, atNs: linkNs, text, tookNs, style }) => ({
          ...{ seq: link, time: showTime(linkNs), text: shownText(text), style },
          took: tookNs === null ? '' : duration(tookNs),
        })),
      };
    },
    at: (seq, podSandboxId) => {
      const { state, atNs, notes } = pastAt(seq);
      const filter = thingFilterOf(podSandboxId === null ? {} : { pod: podSandboxId });
      const tables = (['pods', 'containers'] as const).map((kind) => ({
        title: kind,
        columns: COLUMNS[kind],
        rows: listed(kind, state, filter, atNs).map(({ cells, style }) => ({ cells: cells.map(shownText), style })),
      }));
      return { seq, time: showTime(atNs), notes, tables };
    },
    entries: (seqs) => seqs.flatMap((seq) => unlessDamaged(() => rowOf(seq)) ?? []),
    close: () => whole.close(),
  };
};
