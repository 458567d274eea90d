/** Where the kernel shows its security modules (AppArmor, SELinux), and which of them are on. Must change nothing. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NodeFacts } from '../../domain/model/node-facts.ts';
import { exists } from './exists.ts';

export const APPARMOR_DIR = '/sys/kernel/security/apparmor';
/** What compiles profiles and loads them. */
export const APPARMOR_PARSER = 'apparmor_parser';

export interface SecurityModulePlaces {
  readonly apparmorDir: string;
  /** The kernel module's parameter: Y or N. */
  readonly apparmorEnabledPath: string;
  readonly selinuxDir: string;
}

const ofKernel: SecurityModulePlaces = {
  apparmorDir: APPARMOR_DIR,
  apparmorEnabledPath: '/sys/module/apparmor/parameters/enabled',
  selinuxDir: '/sys/fs/selinux',
};

/** What a kernel lacks reads as false. */
export const readSecurityModules = async (
  places: SecurityModulePlaces = ofKernel,
): Promise<Pick<NodeFacts, 'apparmor' | 'selinux'>> => {
  const [enabled, apparmor, selinux] = await Promise.all([
    readFile(places.apparmorEnabledPath, 'utf8').catch(() => ''),
    exists(places.apparmorDir),
    exists(join(places.selinuxDir, 'enforce')),
  ]);
  return { apparmor: enabled.startsWith('Y') && apparmor, selinux };
};
