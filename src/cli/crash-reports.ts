/** The reports of crashes that lie in a root directory, for `scribe doctor` and bundles. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type CrashReport, crashReportsAmong } from '../daemon/crash-report.ts';
import { crashReportIn } from './replay/crash.ts';

export interface StoredCrash {
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
