/**
 * What goes into a bundle, part by part: its name, what it is, and how it is made. A part that cannot be made says why
 * instead: a bundle is mostly wanted when something is broken.
 */
import { readdir, readFile, stat, statfs, writeFile } from 'node:fs/promises';
import { availableParallelism, freemem, loadavg, totalmem, uptime } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../config/load.ts';
import { journalFiles } from '../../journal/files.ts';
import { readHostFacts } from '../../platform/linux/host-facts.ts';
import { doctor, QUOTING_CHECKS } from '../doctor.ts';
import { storedCrashes } from '../crash-reports.ts';
import { exportCommand } from '../export.ts';
import type { Level } from '../export/level.ts';
import { jsonLine } from '../format.ts';
import { journalInfo } from '../journal/info.ts';
import { journalVkey } from '../journal/vkey.ts';
import { journalOf, overridesOf } from '../places.ts';
import { report } from '../report.ts';
import { versionOfScribe } from '../version.ts';
import { type Said, saidBy } from './captured.ts';
import { configOf, crashReportAt, doctorLineAt, reportLineAt } from './redact.ts';

/** What was asked for. */
export interface Asked {
  readonly root: string;
  readonly level: Level;
  readonly since: string;
  readonly until: string | undefined;
  /** Options that the daemon runs with, for the doctor. */
  readonly node: Parameters<typeof overridesOf>[0];
}

export interface Part {
  readonly name: string;
  readonly about: string;
  /** Writes the file; null: there is nothing of it here. Rejects when it cannot be made. */
  readonly write: (path: string) => Promise<null | void>;
}

const OS_RELEASE = '/etc/os-release';

const textPart = (name: string, about: string, text: () => Promise<string | null>): Part => ({
  name,
  about,
  write: async (path) => {
    const content = await text();
    if (content === null) return null;
    await writeFile(path, content, { mode: 0o600 });
  },
});

/** What a command said, also where it could not say all of it; rejects then, with what is there in the file. */
const saidPart = (
  name: string,
  about: string,
  saying: () => Promise<Said>,
  change: (text: string) => string = (text) => text,
): Part => ({
  name,
  about,
  write: async (path) => {
    const { said, thrown } = await saying();
    await writeFile(path, change(said), { mode: 0o600 });
    if (thrown !== null) throw thrown;
  },
});

const mapLines = (text: string, change: (line: object) => object): string =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => jsonLine(change(JSON.parse(line) as object)))
    .join('');

const hostText = async ({ root }: Asked): Promise<string> => {
  const { bavail, blocks, bsize } = await statfs(root);
  return jsonLine({
    facts: await readHostFacts(),
    osRelease: await readFile(OS_RELEASE, 'utf8').catch(() => null),
    uptimeSeconds: Math.round(uptime()),
    loadAverage: loadavg(),
    processors: availableParallelism(),
    memoryBytes: { total: totalmem(), free: freemem() },
    rootDiskBytes: { total: blocks * bsize, free: bavail * bsize },
  });
};

/** What lies in the root directory and how large it is; of directories only that they are there. */
const sizesText = async ({ root }: Asked): Promise<string> => {
  const names = (await readdir(root)).sort();
  const rows = await Promise.all(
    names.map(async (name) => {
      const stats = await stat(join(root, name));
      return jsonLine({ name, sizeBytes: stats.isFile() ? stats.size : null, mode: (stats.mode & 0o7777).toString(8) });
    }),
  );
  return rows.join('');
};

const fileText = (path: string): Promise<string | null> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });

const crashParts = async ({ root, level }: Asked): Promise<Part[]> =>
  (await storedCrashes(root)).map(({ name, read }) =>
    textPart(name, 'report of a crash of the daemon', async () => {
      const crash = await read();
      return crash === null ? null : jsonLine(crashReportAt(level, crash));
    }),
  );

const journalPart = ({ root, level, since, until }: Asked): Part => ({
  name: 'journal.jsonl',
  about: `records since ${since}${until === undefined ? '' : ` until ${until}`}, at level ${level}`,
  write: async (path) => {
    const range = { since, ...(until === undefined ? {} : { until }) };
    const { thrown } = await saidBy(exportCommand, { root, level, ...range, output: path });
    if (thrown !== null) throw thrown;
  },
});

/** In the order in which they are made and listed. */
export const partsOf = async (asked: Asked): Promise<readonly Part[]> => {
  const { root, level, since, until, node } = asked;
  const files = journalFiles(journalOf(root));
  const range = { since, ...(until === undefined ? {} : { until }) };
  return [
    textPart('version.json', 'versions of scribe, Node and SQLite', async () =>
      jsonLine({ scribe: versionOfScribe(), node: process.version, versions: process.versions }),
    ),
    textPart(
      'config.json',
      'the configuration by its keys; options of shims and credentials in URLs left out',
      async () => jsonLine(configOf(await loadConfig({ path: node.config, overrides: overridesOf(node) }))),
    ),
    saidPart(
      'doctor.jsonl',
      'what scribe doctor finds',
      () => saidBy(doctor, { ...node, root, json: true }),
      (text) => mapLines(text, (line) => doctorLineAt(level, line, QUOTING_CHECKS)),
    ),
    textPart('host.json', 'kernel, cgroups, capabilities, memory, disk', () => hostText(asked)),
    textPart('sizes.jsonl', 'files of the root directory', () => sizesText(asked)),
    saidPart('journal-info.json', 'what the journal takes, by type and class', () =>
      saidBy(journalInfo, { root, json: true, ...(node.config === undefined ? {} : { config: node.config }) }),
    ),
    textPart('journal.head', 'the newest signed checkpoint', () => fileText(files.head)),
    textPart('journal.checkpoint', 'the newest checkpoint of the tree, a signed note', () => fileText(files.note)),
    saidPart('journal.vkey', 'the public key that checks them', () => saidBy(journalVkey, { root })),
    journalPart(asked),
    saidPart(
      'report.jsonl',
      'what is counted of that time',
      () => saidBy(report, { root, ...range, json: true }),
      (text) => mapLines(text, (line) => reportLineAt(level, line)),
    ),
    ...(await crashParts(asked)),
  ];
};
