/**
 * Takes away what a reboot takes away (processes, mounts, control groups, what was in memory), and has the kernel say that it
 * is another boot. Bridge and rules of the network namespace stay, for both runtimes.
 */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sweep } from '../../test/support/daemon.ts';
import { insideMounts } from '../../test/support/mount-namespace.ts';
import { runOk } from '../../test/support/process.ts';
import type { StagedBoot } from '../../test/support/staged-boot.ts';
import type { Runtime } from './runtimes.ts';

/** Unmounts all below a directory, in the mount namespace in which it runs. */
const unmountBelow = `cut -d ' ' -f 5 /proc/self/mountinfo | grep "^$1/" | sort -r | while read -r path; do umount --lazy "$path"; done`;

/** Of a runtime that was killed. */
export const takeAway = async ({ dirs }: Pick<Runtime, 'dirs'>, staged: StagedBoot): Promise<void> => {
  await sweep(dirs);
  for (const directory of [dirs.state, dirs.root])
    await runOk([...insideMounts(staged.mountNamespace), 'sh', '-ec', unmountBelow, 'sh', directory]);
  for (const name of await readdir(dirs.state)) await rm(join(dirs.state, name), { recursive: true, force: true });
  await staged.reboot();
};
