/** Checks of what confines containers beside namespaces and capabilities, where the kernel has it. */
import type { NodeFacts } from '../../domain/model/node-facts.ts';
import { readSelinuxPolicy } from '../../platform/linux/selinux.ts';
import { APPARMOR_PARSER } from '../../platform/linux/security-modules.ts';
import { type DoctorResult, ok, warning } from './result.ts';
import { findProgram } from '../../platform/linux/find-program.ts';

const APPARMOR = 'AppArmor';
const SELINUX = 'SELinux';

/** `path` is the PATH that the daemon runs with. */
export const checkApparmor = async ({ apparmor }: NodeFacts, path: string): Promise<DoctorResult> => {
  if (!apparmor) return ok(APPARMOR, 'not on in this kernel: containers run without');
  const parser = await findProgram(APPARMOR_PARSER, path);
  if (parser !== null) return ok(APPARMOR, `containers have a profile, which ${parser} loads`);
  return warning(
    APPARMOR,
    `on, but ${APPARMOR_PARSER} is no executable in PATH: containers run unconfined, and those that ask for RuntimeDefault fail`,
    'Install it (Debian calls the package apparmor); the next container has it.',
  );
};

/** `isEnabled` is runtime.enable_selinux; `policyDir` is where the policy is, if not where every node has it. */
export const checkSelinux = async (
  { selinux }: NodeFacts,
  isEnabled: boolean,
  policyDir?: string,
): Promise<DoctorResult> => {
  if (!selinux) return ok(SELINUX, 'not on in this kernel: pods have no labels');
  if (!isEnabled) {
    const remedy = 'Set enable_selinux of [runtime], if the policy knows containers (container-selinux).';
    return warning(SELINUX, 'on, but pods are not labelled, and those that ask for a label fail', remedy);
  }
  const { process, path } = await readSelinuxPolicy(policyDir);
  if (path !== null) return ok(SELINUX, `pods are labelled ${process}, with categories of their own`);
  const remedy = 'Install container-selinux, or another policy with an lxc_contexts.';
  return warning(SELINUX, `pods are labelled ${process}, which the policy does not speak of`, remedy);
};
