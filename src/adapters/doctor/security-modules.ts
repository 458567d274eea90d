/** Checks of what confines containers beside namespaces and capabilities, where the kernel has it. */
import type { NodeFacts } from '../../domain/node-facts.ts';
import { APPARMOR_PARSER } from '../linux/security-modules.ts';
import { type DoctorResult, ok, warning } from './result.ts';
import { findProgram } from './tools.ts';

const APPARMOR = 'AppArmor';

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
