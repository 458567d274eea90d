/**
 * What runs or is mounted under the state directory for a pod or container: shims with all below them, mounts, pinned
 * namespaces. Says whose each is, for a command that knows the journal; and clears away exactly what it is told, for
 * a person who has decided that. Never called by the daemon.
 */
import { readlink, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isAtOrBelow, readMountInfo } from '../../platform/linux/mounts.ts';
import {
  endsWithin,
  holdProcess,
  type ProcessStat,
  readPids,
  readProcessStat,
} from '../../platform/linux/processes.ts';
import { detachMount } from '../../platform/linux/syscalls.ts';

export type Stray =
  /** A shim; `pids` are those of it and of all that it started. */
  | { readonly kind: 'shim'; readonly id: string; readonly pid: number; readonly below: readonly ProcessStat[] }
  | { readonly kind: 'mount'; readonly id: string; readonly path: string };

/** Where things of one pod or container are, each in a directory or file of its id. */
const PLACES = ['bundles', 'shims', 'sandboxes', 'netns', 'ipcns', 'utsns'];
/** Where shims run that pods have one after the other: one that runs nothing is kept, or ended by the next start. */
const KEPT = 'shims';
const SIGKILL = 9;
const END_WAIT_MS = 5_000;

/** The id that a path below a place is about; null when it is about none. */
const idIn = (stateDir: string, path: string): string | null => {
  const place = PLACES.find((name) => isAtOrBelow(path, join(stateDir, name)));
  if (place === undefined) return null;
  const [id = ''] = path.slice(join(stateDir, place).length + 1).split('/');
  return id === '' ? null : id;
};

const allProcesses = async (): Promise<readonly ProcessStat[]> => {
  const stats = await Promise.all((await readPids()).map((pid) => readProcessStat(pid).catch(() => null)));
  return stats.filter((stat) => stat !== null);
};

/** A process and its descendants, those first. */
const treeOf = (root: ProcessStat, all: readonly ProcessStat[]): ProcessStat[] => [
  ...all.filter(({ parentPid }) => parentPid === root.pid).flatMap((child) => treeOf(child, all)),
  root,
];

/** A shim's working directory is its bundle's, or one of its own; what it runs has another. */
const shimsIn = async (stateDir: string): Promise<Stray[]> => {
  const all = await allProcesses();
  const [bundles, kept] = [join(stateDir, 'bundles'), join(stateDir, KEPT)];
  const found: Stray[] = [];
  for (const process of all) {
    const cwd = await readlink(`/proc/${process.pid}/cwd`).catch(() => '');
    const id = isAtOrBelow(cwd, bundles) || isAtOrBelow(cwd, kept) ? idIn(stateDir, cwd) : null;
    const below = treeOf(process, all);
    const isIdle = isAtOrBelow(cwd, kept) && below.length === 1;
    if (id !== null && !isIdle) found.push({ kind: 'shim', id, pid: process.pid, below });
  }
  return found;
};

const mountsIn = async (stateDir: string): Promise<Stray[]> =>
  (await readMountInfo()).flatMap(({ mountPoint }): Stray[] => {
    const id = idIn(stateDir, mountPoint);
    return id === null ? [] : [{ kind: 'mount', id, path: mountPoint }];
  });

/** Everything there is. Who asks looks first and reads the journal then: whatever is made is written down before. */
export const lookForStrays = async (stateDir: string): Promise<readonly Stray[]> => [
  ...(await shimsIn(stateDir)),
  ...(await mountsIn(stateDir)),
];

const end = async (process: ProcessStat): Promise<void> => {
  const held = await holdProcess(process);
  if (held === null) return;
  try {
    held.kill(SIGKILL);
    await endsWithin(held, END_WAIT_MS);
  } finally {
    held.release();
  }
};

/** Ends the processes, then takes away mounts and what they were on. */
export const clearStrays = async (stateDir: string, strays: readonly Stray[]): Promise<void> => {
  for (const stray of strays) if (stray.kind === 'shim') for (const process of stray.below) await end(process);
  // The newest mount first: others may be below it.
  for (const stray of strays.toReversed()) if (stray.kind === 'mount') detachMount(stray.path);
  const ids = new Set(strays.map(({ id }) => id));
  for (const id of ids)
    for (const place of PLACES) await rm(join(stateDir, place, id), { recursive: true, force: true });
};
