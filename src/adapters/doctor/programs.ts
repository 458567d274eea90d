/**
 * Checks of the programs that run pods: a shim and an OCI runtime per runtime handler.
 */
import type { RuntimeHandler } from '../../domain/runtime-handler.ts';
import { type DoctorResult, ok, problem, warning } from './result.ts';
import { findProgram, outputOf } from './tools.ts';

/** The oldest shim whose bootstrap scribe reads. */
const SHIM_MIN = [1, 6] as const;

/** First releases of runc without CVE-2025-31133, CVE-2025-52565 and CVE-2025-52881 (escapes through mounts). */
const RUNC_FIXED = 'runc 1.2.8, 1.3.3 or 1.4.0-rc.3';

const shimCheck = (handler: RuntimeHandler): string => `shim of ${handler.name}`;
const runtimeCheck = (handler: RuntimeHandler): string => `OCI runtime of ${handler.name}`;

const messageOf = (error: unknown): string => (error as Error).message.trim().split('\n')[0] ?? '';

/** io.containerd.runc.v2 is containerd-shim-runc-v2; null for a type that names no program. */
const shimProgram = ({ runtimeType, shimPath }: RuntimeHandler): string | null => {
  if (shimPath !== undefined) return shimPath;
  const [, name, version] = /\.([^./]+)\.(v\d+)$/.exec(runtimeType) ?? [];
  return name === undefined || version === undefined ? null : `containerd-shim-${name}-${version}`;
};

/** `path` is the PATH that the daemon runs with. */
export const checkShim = async (handler: RuntimeHandler, path: string): Promise<DoctorResult> => {
  const check = shimCheck(handler);
  const wanted = shimProgram(handler);
  if (wanted === null) {
    return problem(check, `${handler.runtimeType} names no shim`, 'Write a runtime_type like "io.containerd.runc.v2".');
  }
  const program = await findProgram(wanted, path);
  if (program === null) {
    const remedy = `Install it (containerd brings containerd-shim-runc-v2), or set shim_path of [runtime.handlers.${handler.name}].`;
    return problem(check, `${wanted} is no executable in PATH`, remedy);
  }
  const told = await outputOf(program, ['-v'], { PATH: path }).catch(messageOf);
  const [, version, major, minor] = /Version:\s*v?((\d+)\.(\d+)\S*)/.exec(told) ?? [];
  if (version === undefined) {
    return warning(
      check,
      `${program} does not tell its version: ${messageOf(new Error(told))}`,
      'Check that it is a shim.',
    );
  }
  if (Number(major) < SHIM_MIN[0] || (Number(major) === SHIM_MIN[0] && Number(minor) < SHIM_MIN[1])) {
    const remedy = `Install containerd's shim ${SHIM_MIN.join('.')} or later.`;
    return problem(check, `${program} is version ${version}, older than ${SHIM_MIN.join('.')}`, remedy);
  }
  return ok(check, `${program} ${version}`);
};

/** Whether a version of runc has the fixes of November 2025. */
export const isFixedRunc = (version: string): boolean => {
  const [, majorText, minorText, patchText, candidate] = /^(\d+)\.(\d+)\.(\d+)(?:-rc\.?(\d+))?/.exec(version) ?? [];
  const [major, minor, patch] = [Number(majorText), Number(minorText), Number(patchText)];
  if (major !== 1) return major > 1;
  if (minor === 2) return patch >= 8;
  if (minor === 3) return patch >= 3;
  if (minor === 4 && patch === 0 && candidate !== undefined) return Number(candidate) >= 3;
  return minor >= 4;
};

export const checkOciRuntime = async (handler: RuntimeHandler, path: string): Promise<DoctorResult> => {
  const check = runtimeCheck(handler);
  const program = await findProgram(handler.binaryName, path);
  if (program === null) {
    const remedy = `Install it, or set binary_name of [runtime.handlers.${handler.name}].`;
    return problem(check, `${handler.binaryName} is no executable in PATH`, remedy);
  }
  let told: string;
  try {
    told = await outputOf(program, ['--version'], { PATH: path });
  } catch (error) {
    return problem(check, `${program} can't be run: ${messageOf(error)}`, 'Install it anew.');
  }
  const [, name, version] = /^(\S+) version (\S+)/m.exec(told) ?? [];
  if (version === undefined)
    return warning(check, `${program} does not tell its version`, 'Check that it is an OCI runtime.');
  if (name === 'runc' && !isFixedRunc(version)) {
    const detail = `${program} is runc ${version}; containers can escape from it (CVE-2025-31133, CVE-2025-52565, CVE-2025-52881)`;
    return warning(check, detail, `Install ${RUNC_FIXED} or later, unless your distribution has patched this one.`);
  }
  return ok(check, `${program} is ${name} ${version}`);
};
