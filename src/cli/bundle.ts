/** `scribe bundle`: what a bug report needs, in one file that can be given away. */
import { randomUUID } from 'node:crypto';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { passing } from '../journal/left-behind.ts';
import { openReader } from '../journal/open.ts';
import { messageOf } from '../domain/model/errors.ts';
import { checkPlace, writeArchive } from './bundle/archive.ts';
import { type Part, partsOf } from './bundle/parts.ts';
import { command, failure, misuse } from './command.ts';
import { withRemedy } from './damage.ts';
import { levelOption, parseLevel } from './export/level.ts';
import { bytes } from './format.ts';
import { type ReadExtent, write } from './io.ts';
import { journalOf, nodeOptions, readsInRoot, rootOf } from './places.ts';
import { createProgress, type Progress } from './progress.ts';
import { createTable } from './table.ts';
import { MOMENT_FORMS, parseRange, seqsOf } from './time-argument.ts';

const SINCE = '1d';
const DIR_MODE = 0o700;
const LISTING = 'LISTING.txt';

/** How a part came out. */
interface Made {
  readonly name: string;
  readonly about: string;
  readonly sizeBytes: number | null;
  /** Why it is not there, or not whole. */
  readonly problem: string | null;
}

const madeOf = async ({ name, about, write: writePart }: Part, dir: string): Promise<Made> => {
  const path = join(dir, name);
  try {
    if ((await writePart(path)) === null) return { name, about, sizeBytes: null, problem: 'there is none' };
    return { name, about, sizeBytes: (await stat(path)).size, problem: null };
  } catch (error) {
    const { size = 0 } = (await stat(path).catch(() => null)) ?? {};
    const problem = withRemedy(messageOf(error));
    // What can be had of a journal that is damaged, or for a disk that is full, is what is looked at first.
    if (size > 0) return { name, about, sizeBytes: size, problem: `no more than this: ${problem}` };
    await rm(path, { force: true });
    return { name, about, sizeBytes: null, problem };
  }
};

const lineOf = ({ name, about, sizeBytes, problem }: Made): string =>
  `${name}: ${about}; ${sizeBytes === null ? 'missing' : bytes(sizeBytes)}${problem === null ? '' : `: ${problem}`}\n`;

/** Nothing where the journal cannot be read: then that part is missing, and says why. */
const extentOf = (root: string, range: { readonly since: string; readonly until: string | undefined }): ReadExtent => {
  try {
    const reader = openReader(journalOf(root));
    try {
      return seqsOf(reader, parseRange(range));
    } finally {
      reader.close();
    }
  } catch {
    return {};
  }
};

const refuseScratch = (thrown: Error): never => {
  throw failure(
    `What goes into a bundle is made in ${tmpdir()}, which cannot be written: ${thrown.message}. Make room there, or name another directory by TMPDIR.`,
    thrown,
  );
};

/** What is not whole is no bundle, and what it is made from goes in any case. */
const writeBundle = async (
  parts: readonly Part[],
  name: string,
  path: string,
  progress: Progress,
): Promise<readonly Made[]> => {
  const scratch = join(tmpdir(), `scribe-bundle-${randomUUID()}`);
  const { keep } = passing([scratch, path]);
  try {
    const dir = join(scratch, name);
    await mkdir(scratch, { mode: DIR_MODE }).catch(refuseScratch);
    await mkdir(dir, { mode: DIR_MODE }).catch(refuseScratch);
    const made: Made[] = [];
    for (const part of parts) {
      progress.draw(() => [`making ${part.name}`]);
      made.push(await madeOf(part, dir));
    }
    await writeFile(join(dir, LISTING), made.map(lineOf).join(''), { mode: 0o600 }).catch(refuseScratch);
    progress.draw(() => [`writing ${path}`]);
    await writeArchive(scratch, name, path);
    progress.clear();
    return made;
  } finally {
    await rm(scratch, { recursive: true, force: true });
    keep();
  }
};

export const bundle = command({
  name: 'bundle',
  summary: 'put what a bug report needs into one file',
  description: [
    'Writes a tar.gz of: versions, the configuration, what scribe doctor finds, facts of the host, sizes, reports of crashes, the records of a time as lines of JSON, the signed checkpoints and the public key, and what scribe report counts. What cannot be made is named with the reason; the rest is there.',
    `At the default --level nothing is in it that a client chose freely (commands, arguments, environment, labels, annotations, paths, messages), and of errors only where they happened. Never in it are keys, credentials in URLs of the configuration and options of shims. ${LISTING} in it says what is there: read it, and the files, before you give it away.`,
    'Reads only, with the daemon up or down. Give it the options that the daemon runs with.',
  ],
  options: {
    ...nodeOptions,
    since: { value: 'MOMENT', about: `Records of this moment and later; ${SINCE} unless told. ${MOMENT_FORMS}` },
    until: { value: 'MOMENT', about: 'Records of this moment and earlier.' },
    level: levelOption,
    output: { value: 'FILE', about: 'The file, which must not be there yet; by default scribe-HOST-TIME.tar.gz here.' },
  },
  exitStatus: '0 when the file is there, though parts may be missing from it; 1 when it is not',
  examples: [
    ['scribe bundle', 'The last day, for whoever looks for a bug.'],
    ['scribe bundle --since 03:00 --until 03:20 --level request-response', 'All that was recorded around a crash.'],
  ],
  readsIn: readsInRoot,
  run: async ({ since = SINCE, until, level: levelText, output, ...node }, _operands, io) => {
    const level = parseLevel(levelText);
    parseRange({ since, until });
    if (output === '-')
      throw misuse('--output -: a bundle is a file of its own: name one (./- is one that is called so).');
    const root = await rootOf(node).catch((error: unknown) => {
      throw failure(`${messageOf(error)}\nName the root directory with --root to have a bundle all the same.`, error);
    });
    const name = `scribe-${hostname()}-${new Date().toISOString().replace(/[:.]/g, '')}`;
    const path = resolve(output ?? `${name}.tar.gz`);
    checkPlace(path);
    const parts = await partsOf({ root, level, since, until, node });
    const progress = createProgress(io.stderr);
    // Shown when it is whole and nothing else is left: who reads it may stop at the first line.
    const made = await writeBundle(parts, name, path, progress);
    void io.recordRead?.(extentOf(root, { since, until }));
    const table = createTable(io.stdout, [
      { title: 'FILE', widthMax: 40 },
      { title: 'SIZE', widthMax: 12 },
      { title: 'WHAT', widthMax: 200 },
    ]);
    for (const { name: file, about, sizeBytes, problem } of made)
      await table.add(
        [file, sizeBytes === null ? '-' : bytes(sizeBytes), problem === null ? about : `${about}: ${problem}`],
        problem === null ? 'plain' : 'doubtful',
      );
    await table.flush();
    await write(io.stdout, `\n${path}: ${bytes((await stat(path)).size)}\n`);
    return 0;
  },
});
