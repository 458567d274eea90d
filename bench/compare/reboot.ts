/**
 * What a node's pods wait for after a reboot: it is staged by taking away all that a reboot takes away (processes, mounts,
 * control groups, what was in memory) and giving the kernel another boot id. Bridge and rules of the network namespace stay,
 * for both runtimes. Knows no goal.
 */
import { randomUUID } from 'node:crypto';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Owner } from '../../test/support/cleanup.ts';
import { sweep } from '../../test/support/daemon.ts';
import { insideMounts, privateMounts } from '../../test/support/mount-namespace.ts';
import { runOk } from '../../test/support/process.ts';
import type { ClientResult } from './client.ts';
import type { Figures } from './metrics.ts';
import type { Runtime } from './runtimes.ts';

/** A mount namespace in which the kernel's boot id is what a file says. */
export interface BootId {
  readonly mountNamespace: string;
  readonly path: string;
}

/** @param script  what else is to be done in the namespace first */
export const stageBootId = async (owner: Owner, dir: string, script: string): Promise<BootId> => {
  const path = join(dir, 'boot_id');
  await writeFile(path, randomUUID());
  const bind = `mount --bind ${path} /proc/sys/kernel/random/boot_id`;
  return { path, mountNamespace: await privateMounts(owner, `${script}\n${bind}`) };
};

/** Unmounts all below a directory, in the mount namespace in which it runs. */
const unmountBelow = `cut -d ' ' -f 5 /proc/self/mountinfo | grep "^$1/" | sort -r | while read -r path; do umount --lazy "$path"; done`;

/** The runtime runs no more; nothing of its pods does after it, and nothing of them is in memory. */
export const takeAway = async ({ dirs }: Pick<Runtime, 'dirs'>, { mountNamespace, path }: BootId): Promise<void> => {
  await sweep(dirs);
  for (const directory of [dirs.state, dirs.root])
    await runOk([...insideMounts(mountNamespace), 'sh', '-ec', unmountBelow, 'sh', directory]);
  for (const name of await readdir(dirs.state)) await rm(join(dirs.state, name), { recursive: true, force: true });
  await writeFile(path, randomUUID());
};

/** From when the start was asked for, until all containers were listed, and until every pod had been made anew. */
export const rebootFigures = (askedAtMs: number, list: ClientResult, runningAtMs: number): Figures => ({
  rebootList: (list.answeredAtMs ?? Number.NaN) - askedAtMs,
  rebootRunning: runningAtMs - askedAtMs,
});
