/** Real control groups of a test's own, removed with what runs in them when their owner ends. */
import { randomBytes } from 'node:crypto';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readCgroupFacts } from '../../../src/platform/linux/cgroups.ts';
import type { CgroupFacts } from '../../../src/domain/model/node-facts.ts';
import { type Owner, onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { eventually } from '../../support/pods.ts';
import { type BackgroundProcess, startProcess } from '../../support/process.ts';

export const clock = { nowNs: () => BigInt(Date.now()) * 1_000_000n, monoNs: () => process.hrtime.bigint() };

export interface TestCgroup {
  /** As a spec's cgroupsPath has it. */
  readonly path: string;
  readonly set: (controller: string, file: string, value: string) => Promise<void>;
  readonly run: (script: string) => Promise<BackgroundProcess>;
  readonly remove: () => Promise<void>;
}

const removeDirectory = (directory: string): Promise<unknown> =>
  // A process that was killed leaves its cgroup a moment later.
  eventually(`the end of ${directory}`, () =>
    rmdir(directory).then(
      () => true,
      (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
    ),
  );

/** The hierarchies in use on this machine that stats are read from, as one directory per mount. */
export const hierarchies = async (): Promise<CgroupFacts> => {
  requireRoot();
  const facts = await readCgroupFacts();
  if (facts.version === 2) return facts;
  const wanted = Object.entries(facts.controllers).filter(([name]) => ['cpuacct', 'memory', 'pids'].includes(name));
  return { ...facts, controllers: Object.fromEntries(wanted) };
};

export const cgroupOf = async (owner: Owner, roots: readonly string[], parent = ''): Promise<TestCgroup> => {
  const path = `${parent}/scribe-test-${randomBytes(4).toString('hex')}`;
  const directories = [...new Set(roots)].map((root) => join(root, path));
  const remove = async (): Promise<void> => {
    await Promise.all(directories.map(removeDirectory));
  };
  for (const directory of directories) await mkdir(directory);
  onCleanup(owner, remove);
  const join_ = directories.map((directory) => `echo $$ > ${directory}/cgroup.procs`).join(' && ');
  return {
    path,
    set: (root, file, value) => writeFile(join(root, path, file), value),
    run: (script) => startProcess(owner, ['sh', '-c', `${join_} && ${script}`]),
    remove,
  };
};
