/** A crash report as something to replay: its journal, what was not on disk yet, and the input that could not be decided. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Afterwards, CrashReport, WrittenRecord } from '../../daemon/crash-report.ts';
import type { Sequenced } from '../../domain/model/records.ts';
import { isInput } from '../../domain/turn/redecide.ts';
import { failure } from '../command.ts';
import { bytes, counted, grouped, utcTime } from '../format.ts';
import type { Source, Unreadable } from './source.ts';

/** null: it is none. */
export const crashReportIn = (text: string): CrashReport | null => {
  try {
    const report = JSON.parse(text) as Partial<CrashReport> | null;
    return report?.scribeCrashReport === 1 ? (report as CrashReport) : null;
  } catch {
    return null;
  }
};

/** Beside the report, where both were copied to, or else where it was on the node. */
export const journalOfReport = (report: CrashReport, path: string): string => {
  const beside = ['journal.db', 'journal.jsonl'].map((name) => join(dirname(path), name));
  const found = [...beside, report.journal].find((candidate) => existsSync(candidate));
  if (found === undefined)
    throw failure(
      `The journal of ${path} is neither beside it (journal.db) nor at ${report.journal}: copy it beside the report.`,
    );
  return found;
};

// A report is written by the daemon from records as the domain has them.
const recordOf = (record: WrittenRecord): Sequenced =>
  ({ ...record, atNs: BigInt(record.atNs), monoNs: BigInt(record.monoNs) }) as Sequenced;

const isSame = (record: Sequenced, other: Sequenced | null): boolean =>
  other?.type === record.type && other.stream === record.stream && other.monoNs === record.monoNs;

/**
 * The last record in the journal of the daemon that crashed, or of one before it: what it had decided, and was not on disk, never
 * happened, and the daemons after it gave the same numbers to records of their own.
 */
const endOfLife = (reported: readonly Sequenced[], { headSeq, record }: Source): number => {
  const other = reported.find((one) => one.seq <= headSeq && !isSame(one, record(one.seq)));
  return other === undefined ? headSeq : other.seq - 1;
};

/** The journal up to the crash, and behind it what the report has more. Throws where that was pruned since. */
export const crashSource = (report: CrashReport, journal: Source): Source => {
  const reported = [...report.records, ...(report.input === null || report.isDecided ? [] : [report.input])].map(
    recordOf,
  );
  const endSeq = endOfLife(reported, journal);
  const { start } = journal;
  if (endSeq < start.seq || (report.input !== null && report.input.seq <= start.seq))
    throw failure(
      `What ${journal.name} had when the daemon ended is pruned: it can be replayed from record ${grouped(start.seq + 1)} on. Put a copy from before beside the report.`,
    );
  const more = reported.filter(({ seq }) => seq > endSeq);
  const headSeq = more.at(-1)?.seq ?? endSeq;
  return {
    ...journal,
    headSeq,
    crash: report,
    journaled: (fromSeq, toSeq) =>
      journal.journaled(fromSeq, Math.min(toSeq, endSeq)) +
      more.filter((record) => isInput(record) && record.seq >= fromSeq && record.seq <= toSeq).length,
    record: (seq) => more.find((record) => record.seq === seq) ?? (seq <= endSeq ? journal.record(seq) : null),
    *records(fromSeq, toSeq, told) {
      const reading = { isOver: false };
      const unreadable: Unreadable = (seq, why, endsAt) => {
        if (endsAt !== undefined && seq <= endSeq) reading.isOver = true;
        told.unreadable(seq, why, endsAt);
      };
      for (const record of journal.records(fromSeq, Math.min(toSeq, endSeq), { ...told, unreadable })) {
        if (record.seq > endSeq) break;
        yield record;
      }
      // What the report has does not follow from what could be read.
      if (reading.isOver) return;
      for (const record of more) {
        if (record.seq > toSeq && isInput(record)) return;
        yield record;
      }
    },
  };
};

/** What the report says of itself. */
export const reportLines = ({ version, atNs, what, stack, input, isDecided, afterwards }: CrashReport): string[] => [
  `scribe ${version} ended at ${utcTime(BigInt(atNs))}: ${what}`,
  ...stack
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `  ${line}`),
  ...(afterwards === undefined ? [] : afterwardsLines(afterwards).map((line) => `  ${line}`)),
  input === null
    ? 'Nothing had been decided yet, so there is nothing to decide again.'
    : `${isDecided ? 'The last decision was' : 'It could not decide'} on record ${input.seq}:`,
];

const afterwardsLines = ({ run, pid, underWay, kernelLog, v8 }: Afterwards): string[] => [
  `It ran ${pid === null ? '' : `as process ${pid} `}from record ${run.firstSeq} to record ${run.lastSeq}; the start after it found this out.`,
  ...(v8 === null
    ? []
    : [`V8: ${bytes(v8.heap.usedBytes)} of the heap were in use, of at most ${bytes(v8.heap.limitBytes)}`]),
  ...('unread' in kernelLog
    ? [`The kernel's log could not be read: ${kernelLog.unread}`]
    : kernelLogLines(kernelLog.lines)),
  underWay.length === 0 ? 'No call was under way.' : `${counted(underWay.length, 'call')} had no answer yet:`,
  ...underWay.map(
    ({ seq, method, effects }) =>
      `  ${grouped(seq)}  ${method}${effects.length === 0 ? '' : `: ${effects.join(', ')} had not ended`}`,
  ),
];

const kernelLogLines = (lines: readonly string[]): string[] =>
  lines.length === 0
    ? ["The kernel's log tells of no fault of it, nor of the OOM killer."]
    : lines.map((line) => `kernel: ${line}`);
