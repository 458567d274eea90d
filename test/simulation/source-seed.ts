/**
 * A seed that follows from the sources that histories run: fresh for every change of them, and the same for everybody who
 * has them, so that what fails on one machine fails on the next.
 */
import { createHash } from 'node:crypto';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const top = join(import.meta.dirname, '../..');
const SOURCES = 'src/{domain,engine,journal,projections}/**/*.ts';
const SIMULATOR = 'test/simulation/**/*.ts';
const SEEDS = 1_000_000_000;

export const seedOfSources = async (): Promise<number> => {
  const paths = (await Array.fromAsync(glob([SOURCES, SIMULATOR], { cwd: top }))).sort();
  const hash = createHash('sha256');
  for (const path of paths) hash.update(`${path}\0`).update(await readFile(join(top, path)));
  return hash.digest().readUInt32BE(0) % SEEDS;
};
