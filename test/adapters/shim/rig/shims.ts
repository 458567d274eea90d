/** Finds the real shims that the tests run against. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { parseShimVersion } from '../../../../src/adapters/shim/process/bootstrap.ts';
import { watchesMemoryFromCreation } from '../../../../src/domain/model/shim-version.ts';
import { exists } from '../../../../src/platform/linux/exists.ts';

const run = promisify(execFile);

const shimName = 'containerd-shim-runc-v2';

export interface TestShim {
  readonly version: string;
  readonly path: string;
}

/** The shims to test: the one in PATH, and those that SCRIBE_TEST_SHIMS names (paths, separated by colons). */
export const testShims = async (): Promise<readonly TestShim[]> => {
  const inPath = (process.env['PATH'] ?? '').split(delimiter).map((dir) => join(dir, shimName));
  const installed: string[] = [];
  for (const path of inPath) if (installed.length === 0 && (await exists(path))) installed.push(path);
  assert.ok(installed.length > 0, `${shimName} is needed for this test: install containerd`);
  assert.equal(process.getuid?.(), 0, 'this test runs containers and needs root');
  const named = (process.env['SCRIBE_TEST_SHIMS'] ?? '').split(delimiter).filter(Boolean);
  return Promise.all(
    [...installed, ...named].map(async (path) => {
      const { stdout } = await run(path, ['-v']);
      return { path, version: /Version:\s+(\S+)/.exec(stdout)?.[1] ?? 'unknown' };
    }),
  );
};

/** The shim itself where it is of a version in which tasks are started by the daemon; else it, saying that it is. */
export const asNewerShim = async ({ path, version }: TestShim, dir: string): Promise<string> => {
  if (watchesMemoryFromCreation(parseShimVersion(`Version: ${version}`))) return path;
  const script = join(dir, 'newer-shim');
  await writeFile(script, `#!/bin/sh\n[ "$1" = -v ] && echo 'Version: v2.2.0' && exit\nexec ${path} "$@"\n`);
  await chmod(script, 0o755);
  return script;
};
