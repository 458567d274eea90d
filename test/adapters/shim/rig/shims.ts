/** Finds the real shims that the tests run against. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { access } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const executable = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const shimName = 'containerd-shim-runc-v2';

/** The shims to test: the one in PATH, and those that SCRIBE_TEST_SHIMS names (paths, separated by colons). */
export const testShims = async (): Promise<readonly { readonly version: string; readonly path: string }[]> => {
  const inPath = (process.env['PATH'] ?? '').split(delimiter).map((dir) => join(dir, shimName));
  const installed: string[] = [];
  for (const path of inPath) if (installed.length === 0 && (await executable(path))) installed.push(path);
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
