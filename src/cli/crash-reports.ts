/** The reports of crashes that lie in a root directory: for bundles, and as what `scribe doctor` says of them. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DoctorResult, warning } from '../adapters/doctor/result.ts';
import { type CrashReport, crashReportsAmong } from '../daemon/crash-report.ts';
import { readV8Report, v8ReportIn } from '../daemon/silent-death/v8-report.ts';
import { bytes, counted, utcTime } from './format.ts';
import { crashReportIn } from './replay/crash.ts';

export const CRASHES = 'crashes';

interface StoredCrash {
  readonly name: string;
  /** null: the file is no report, or not whole. */
  readonly read: () => Promise<CrashReport | null>;
}

/** Oldest first; none where the directory cannot be read. */
export const storedCrashes = async (root: string): Promise<readonly StoredCrash[]> =>
  crashReportsAmong(await readdir(root).catch(() => [])).map((name) => ({
    name,
    read: async () => crashReportIn(await readFile(join(root, name), 'utf8')),
  }));

export const crashResults = async (root: string): Promise<DoctorResult[]> => [
  ...(await newestResult(root)),
  ...(await v8Result(root)),
];

/** A report that cannot be read says nothing, but that something was. */
const newestResult = async (root: string): Promise<DoctorResult[]> => {
  const crashes = await storedCrashes(root);
  const newest = crashes.at(-1);
  if (newest === undefined) return [];
  const crash = await newest.read().catch(() => null);
  const what = crash === null ? 'it cannot be read' : `${utcTime(BigInt(crash.atNs))}: ${crash.what}`;
  const path = join(root, newest.name);
  const found = `${counted(crashes.length, 'report')} of crashes of the daemon, the newest ${path}, ${what}`;
  const remedy = `See scribe replay ${path}; scribe bundle has what a bug report needs. Remove it when you are done.`;
  return [warning(CRASHES, found, remedy)];
};

/** It is taken in by the next daemon that serves. */
const v8Result = async (root: string): Promise<DoctorResult[]> => {
  const end = await readV8Report(v8ReportIn(root));
  if (end === null) return [];
  const { usedBytes, limitBytes } = end.heap;
  const found = `V8 ended a daemon, and none has served since: ${end.event}, with ${bytes(usedBytes)} of ${bytes(limitBytes)} of heap in use`;
  const remedy = 'Start it; when it ends so again, give it more (NODE_OPTIONS=--max-old-space-size=MEGABYTES).';
  return [warning(CRASHES, found, remedy)];
};
