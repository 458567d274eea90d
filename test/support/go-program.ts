/**
 * Programs in Go that stand on the other end of a protocol in tests: built on demand from a directory beside this file, or
 * one of a module that has several, into the cache directory, where a change of their sources makes another one.
 */
import { createHash } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { cacheDir } from '../../scripts/lib/cache-dir.ts';
import { run } from './process.ts';

const cache = join(cacheDir(), 'bin');
/** kubelet has three thousand packages. */
const buildTimeoutMs = 1_500_000;

const hashOf = async (directories: ReadonlySet<string>): Promise<string> => {
  const hash = createHash('sha256');
  for (const directory of directories) {
    const files = (await readdir(directory, { withFileTypes: true })).filter((entry) => entry.isFile());
    for (const name of files.map((file) => file.name).sort()) hash.update(await readFile(join(directory, name)));
  }
  return hash.digest('hex').slice(0, 16);
};

const build = async (sources: string, path: string, program = '.'): Promise<void> => {
  await mkdir(cache, { recursive: true });
  const made = `${path}.${process.pid}`;
  const argv = ['go', 'build', '-C', sources, '-trimpath', '-o', made, program];
  const env = { ...process.env, GOFLAGS: '-mod=readonly' };
  const result = await run(argv, { env, timeoutMs: buildTimeoutMs }).catch((error: unknown) => {
    throw new Error(`${sources} needs Go to be built (apt-get install golang, or go.dev): ${String(error)}`);
  });
  if (result.exitCode !== 0) throw new Error(`Building ${program} of ${sources} failed: ${result.stderr}`);
  // Another file's tests may have built the same meanwhile.
  await rename(made, path);
  await rm(made, { force: true });
};

/**
 * The path of the program of that directory ("kubelet", "nri-plugins/logger"); builds it the first time, which takes
 * minutes on a small machine.
 */
export const goProgram = async (name: string): Promise<string> => {
  const sources = join(import.meta.dirname, name);
  const [module = ''] = name.split('/');
  const hash = await hashOf(new Set([join(import.meta.dirname, module), sources]));
  const path = join(cache, `${basename(name)}-${hash}`);
  await access(path).catch(() => build(sources, path));
  return path;
};

/** The programs of others that a module pins, as their packages: the `tool` lines of its go.mod. */
export const toolsOf = async (module: string): Promise<string[]> => {
  const text = await readFile(join(import.meta.dirname, module, 'go.mod'), 'utf8');
  const [, block = ''] = /^tool \(\n([^)]*)\)/m.exec(text) ?? [];
  return block.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
};

/** The path of such a program, by its last name ("fsck"); builds it the first time. */
export const goTool = async (module: string, name: string): Promise<string> => {
  const sources = join(import.meta.dirname, module);
  const program = (await toolsOf(module)).find((tool) => basename(tool) === name);
  if (program === undefined) throw new Error(`${sources}/go.mod has no tool ${name}.`);
  const path = join(cache, `${name}-${await hashOf(new Set([sources]))}`);
  await access(path).catch(() => build(sources, path, program));
  return path;
};
