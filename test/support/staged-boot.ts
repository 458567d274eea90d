/** A reboot, as far as a program can tell by the kernel's boot id: a mount namespace in which that is what a file says. */
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Owner } from './cleanup.ts';
import { privateMounts } from './mount-namespace.ts';

export interface StagedBoot {
  readonly mountNamespace: string;
  /** From then on it is another boot. What a reboot ends besides is the caller's to end. */
  readonly reboot: () => Promise<void>;
}

/** @param script  what else is done in the namespace first */
export const stageBoot = async (owner: Owner, dir: string, script = ''): Promise<StagedBoot> => {
  const path = join(dir, 'boot_id');
  const reboot = (): Promise<void> => writeFile(path, randomUUID());
  await reboot();
  const bind = `mount --bind ${path} /proc/sys/kernel/random/boot_id`;
  return { mountNamespace: await privateMounts(owner, `${script}\n${bind}`), reboot };
};
