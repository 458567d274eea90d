/**
 * Programs in Go that stand on the other end of a protocol in tests: built on demand from a directory beside this file
 * into the cache directory, where a change of their sources makes another one.
 */
import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { run } from './process.ts';

const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'scribe/bin');
/** kubelet has three thousand packages. */
const buildTimeoutMs = 1_500_000;

const hashOf = async (sources: string): Promise<string> => {
  const hash = createHash('sha256');
  for (const name of (await readdir(sources)).sort()) hash.update(await readFile(join(sources, name)));
  return hash.digest('hex').slice(0, 16);
};

const build = async (sources: string, path: string): Promise<void> => {
  await mkdir(cache, { recursive: true });
  const made = `${path}.${process.pid}`;
  const argv = ['go', 'build', '-C', sources, '-trimpath', '-o', made, '.'];
  const env = { ...process.env, GOFLAGS: '-mod=readonly' };
  const result = await run(argv, { env, timeoutMs: buildTimeoutMs }).catch((error: unknown) => {
    throw new Error(`${sources} needs Go to be built (apt-get install golang, or go.dev): ${String(error)}`);
  });
  if (result.exitCode !== 0) throw new Error(`Building ${sources} failed: ${result.stderr}`);
  // Another file's tests may have built the same meanwhile.
  await rename(made, path);
  await rm(made, { force: true });
};

/** The path of the program of that directory; builds it the first time, which takes minutes on a small machine. */
export const goProgram = async (name: string): Promise<string> => {
  const sources = join(import.meta.dirname, name);
  const path = join(cache, `${name}-${await hashOf(sources)}`);
  await access(path).catch(() => build(sources, path));
  return path;
};
