/**
 * The report of a crash for a daemon that could write none: a signal ended it, the kernel for want of memory, or V8. The
 * journal has all that it decided, so the next daemon writes the report, from the journal and from what kernel and V8 say;
 * once it serves, for nothing of it is needed to serve.
 *
 *   scribe.pid, calls without an answer ──(noted before they are overwritten)──┐
 *   journal: the last run has no end ──> kernel's log, V8's report ────────────┴──> crash-….json, one line of the log
 */
import { readFileSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Input, rpcOf, type Sequenced } from '../../domain/model/records.ts';
import type { NodeState } from '../../domain/model/state.ts';
import { messageOf } from '../../domain/model/errors.ts';
import { openReader } from '../../journal/open.ts';
import { linesOfEnd, namesPid, readKernelLog } from '../../platform/linux/kernel-log.ts';
import {
  type Afterwards,
  type CallUnderWay,
  type CrashReport,
  crashReportName,
  crashReportsAmong,
  endedAtMs,
  reportsTooMany,
  written,
} from '../crash-report.ts';
import { lastEnd, type LastEnd } from './last-run.ts';
import { readV8Report, v8ReportIn } from './v8-report.ts';

/** What a start changes, and so notes before it does. */
export interface Traces {
  /** Of the newest record that it found. */
  readonly lastSeq: number;
  readonly pid: number | null;
  readonly underWay: readonly CallUnderWay[];
}

interface Options {
  readonly rootDir: string;
  readonly journalPath: string;
  readonly traces: Traces;
  readonly log: Record<'info' | 'warn', (fields: object, message: string) => void>;
  readonly kernelLog?: () => Promise<string>;
}

const CALLS_MAX = 100;
const LINES_MAX = 50;
const LINE_CHARACTERS_MAX = 300;
const NS_PER_MS = 1_000_000n;
/** The kernel's log has a clock of its own, which is not quite the monotonic one. */
const CLOCKS_APART_NS = 10_000_000_000n;
const PID = /^\d+$/;

/** Of the daemon before; null: it took its pid away at its end. */
export function pidLeftIn(path: string): number | null {
  try {
    const text = readFileSync(path, 'utf8').trim();
    return PID.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
}

export const callsUnderWay = ({ calls, effects }: NodeState): readonly CallUnderWay[] => {
  if (calls.size === 0) return [];
  const effectsOf = Map.groupBy(effects.values(), ({ call }) => call);
  return [...calls.values()].slice(0, CALLS_MAX).map(({ seq, request }) => ({
    seq,
    method: rpcOf(request),
    effects: (effectsOf.get(seq) ?? []).map(({ intent }) => intent.kind),
  }));
};

/** Never rejects: whatever goes wrong here is for the log alone. */
export async function reportSilentDeath({ rootDir, log, ...options }: Options): Promise<void> {
  const v8Report = v8ReportIn(rootDir);
  try {
    const end = await endOf(options);
    if (end.how === 'silent') await write({ rootDir, log, ...options }, end, v8Report);
    if (end.how === 'rebooted')
      log.info({}, 'the node was rebooted, with or after the end of the daemon before this one');
    await rm(v8Report, { force: true });
  } catch (error) {
    log.warn({ error }, 'how the daemon before this one ended could not be found out');
  }
}

async function endOf({ journalPath, traces: { lastSeq } }: Pick<Options, 'journalPath' | 'traces'>): Promise<LastEnd> {
  if (lastSeq === 0) return { how: 'none' };
  const reader = openReader(journalPath);
  try {
    return await lastEnd(reader, lastSeq, reader.headSeq());
  } finally {
    reader.close();
  }
}

type Silent = Extract<LastEnd, { how: 'silent' }>;

async function write(
  { rootDir, journalPath, traces, log, kernelLog = readKernelLog }: Options,
  { version, lastAtNs, lastInput, nextStartAtNs, ...run }: Silent,
  v8Report: string,
): Promise<void> {
  // Where its last words could not be kept, its own report may have been. One of a clock that was ahead is none of it.
  const names = crashReportsAmong(await readdir(rootDir));
  const startedAtMs = Number(run.startedAtNs / NS_PER_MS);
  const nextStartAtMs = Number(nextStartAtNs / NS_PER_MS);
  if (names.map(endedAtMs).some((endMs) => endMs >= startedAtMs && endMs <= nextStartAtMs)) return;
  const v8 = await readV8Report(v8Report);
  const afterwards: Afterwards = {
    run: { firstSeq: run.firstSeq, lastSeq: run.lastSeq },
    pid: traces.pid,
    underWay: traces.underWay,
    kernelLog: await linesSince(kernelLog, traces.pid, run.startedMonoNs - CLOCKS_APART_NS),
    v8: v8 !== null && v8.atMs >= startedAtMs ? v8 : null,
  };
  const name = crashReportName(Number(lastAtNs / NS_PER_MS));
  const report = reportOf(journalPath, version, lastAtNs, lastInput, afterwards);
  const path = join(rootDir, name);
  await writeFile(path, `${JSON.stringify(report)}\n`, { mode: 0o600 }).catch(async (error: unknown) => {
    // On a full disk a part of it would stand for the whole.
    await rm(path, { force: true });
    throw error;
  });
  for (const old of reportsTooMany([...names, name])) await rm(join(rootDir, old), { force: true });
  log.warn({ report: path }, `the daemon before this one: ${report.what}`);
}

async function linesSince(
  read: () => Promise<string>,
  pid: number | null,
  sinceNs: bigint,
): Promise<Afterwards['kernelLog']> {
  try {
    const lines = linesOfEnd(await read(), pid, sinceNs).slice(-LINES_MAX);
    return { lines: lines.map((line) => line.slice(0, LINE_CHARACTERS_MAX)) };
  } catch (error) {
    return { unread: messageOf(error) };
  }
}

const reportOf = (
  journal: string,
  version: string,
  atNs: bigint,
  input: Sequenced<Input>,
  afterwards: Afterwards,
): CrashReport => ({
  scribeCrashReport: 1,
  version,
  atNs: String(atNs),
  journal,
  what: whatEnded(afterwards),
  stack: afterwards.v8?.frames.map((frame) => `    ${frame}`).join('\n') ?? '',
  // All that it had decided and was on disk is in the journal; of what was not, nobody was told (C3).
  records: [],
  input: written(input),
  isDecided: true,
  afterwards,
});

const whatEnded = ({ pid, kernelLog, v8 }: Afterwards): string => {
  if (v8 !== null) return `V8 ended it: ${v8.event}`;
  const lines = pid === null || !('lines' in kernelLog) ? [] : kernelLog.lines.filter((line) => namesPid(line, pid));
  if (lines.some((line) => /\boom-kill|\bKilled process\b/i.test(line)))
    return 'the kernel killed it, for memory had run out';
  if (lines.some((line) => /\b(segfault|general protection|trap)\b/i.test(line)))
    return 'it ended by a fault, which the kernel tells of';
  return 'it ended without a word, as by a signal';
};
