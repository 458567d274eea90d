/**
 * What a daemon that could not go on leaves for whoever looks for the reason: the journal, the input that was decided last
 * or could not be, what was decided and is not in the journal, and the stack. `scribe replay` takes it as it is. Written
 * synchronously, because the process ends right after; must never throw. Of a daemon that could write nothing any more the
 * next one writes it (silent-death/report.ts).
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { knownWordsOf } from '../domain/model/error-words.ts';
import type { Input, Sequenced } from '../domain/model/records.ts';
import type { Unfinished } from '../engine/guarded-turns.ts';
import type { V8End } from './silent-death/v8-report.ts';

/** A record as JSON has it: 64-bit numbers as decimal text. */
export type WrittenRecord<R extends Sequenced = Sequenced> = Omit<R, 'atNs' | 'monoNs'> & {
  readonly atNs: string;
  readonly monoNs: string;
};

export interface CrashReport {
  readonly scribeCrashReport: 1;
  readonly version: string;
  readonly atNs: string;
  /** Path of the journal on that node. */
  readonly journal: string;
  /** What went wrong, in words. */
  readonly what: string;
  /** Of the error and of all that led to it. */
  readonly stack: string;
  /** Decided, but not known to be on disk. */
  readonly records: readonly WrittenRecord[];
  /** The newest input that was taken; null: none was yet. */
  readonly input: WrittenRecord<Sequenced<Input>> | null;
  /** Something followed from that input: it is among the records, or in the journal. */
  readonly isDecided: boolean;
  /** Absent: the daemon wrote the report itself. */
  readonly afterwards?: Afterwards;
}

/** What the next start found out of a daemon that ended without a word. */
export interface Afterwards {
  /** Of what it recorded. */
  readonly run: { readonly firstSeq: number; readonly lastSeq: number };
  /** null: it left none. */
  readonly pid: number | null;
  /** Calls without an answer, oldest first, and the effects that had not ended for each. */
  readonly underWay: readonly CallUnderWay[];
  /** What the kernel's log says of that pid, or of the OOM killer, while it ran. */
  readonly kernelLog: { readonly lines: readonly string[] } | { readonly unread: string };
  /** null: V8 did not end it, or could not say so. */
  readonly v8: V8End | null;
}

export interface CallUnderWay {
  readonly seq: number;
  readonly method: string;
  readonly effects: readonly string[];
}

export interface CrashScene {
  /** The journal's, for its directory is where the report goes. */
  readonly rootDir: string;
  readonly version: string;
  /** Absent while no engine runs. */
  unfinished?: () => Unfinished;
}

const NAME = /^crash-(\d+)\.json$/;
/** Older ones are removed: a daemon that crashes at each start fills no disk. */
const KEPT_MAX = 5;
/** As many records as that are of one moment; more would only mean a disk that hangs. */
const RECORDS_MAX = 1_000;

/** Of the names in a root directory those of reports, oldest first. */
export const crashReportsAmong = (names: readonly string[]): readonly string[] =>
  names.filter((name) => NAME.test(name)).toSorted();

/** When what a report is of ended. */
export const endedAtMs = (name: string): number => Number(NAME.exec(name)?.[1]);

export const crashReportName = (endMs: number): string => `crash-${endMs}.json`;

/** Those that make room for newer ones. */
export const reportsTooMany = (names: readonly string[]): readonly string[] =>
  crashReportsAmong(names).slice(0, -KEPT_MAX);

export const written = <R extends Sequenced>(record: R): WrittenRecord<R> => ({
  ...record,
  atNs: String(record.atNs),
  monoNs: String(record.monoNs),
});

/** On a full disk a part of it would keep the next start from making one of its own. */
const writeWhole = (path: string, text: string): void => {
  try {
    writeFileSync(path, text, { mode: 0o600 });
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
};

export function writeCrashReport(scene: CrashScene, what: string, error: unknown, nowMs: number = Date.now()): void {
  try {
    const { records = [], latest = null, isDecided = false } = scene.unfinished?.() ?? {};
    const report: CrashReport = {
      scribeCrashReport: 1,
      version: scene.version,
      atNs: `${nowMs}000000`,
      journal: join(scene.rootDir, 'journal.db'),
      what,
      stack: knownWordsOf(error),
      records: records.slice(0, RECORDS_MAX).map(written),
      input: latest === null ? null : written(latest),
      isDecided,
    };
    writeWhole(join(scene.rootDir, crashReportName(nowMs)), `${JSON.stringify(report)}\n`);
    for (const name of reportsTooMany(readdirSync(scene.rootDir))) rmSync(join(scene.rootDir, name), { force: true });
  } catch {
    // There is nobody left to tell; the log and the crash file have the words.
  }
}
