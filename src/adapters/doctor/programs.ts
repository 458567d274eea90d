/**
 * Checks of the programs that run pods: a shim and an OCI runtime per runtime handler.
 */
import { escapesFromRunc } from '../../domain/node/known-escapes.ts';
import type { ShimVersion } from '../../domain/model/shim-version.ts';
import type { RuntimeHandler } from '../../domain/model/runtime-handler.ts';
import { type DoctorResult, ok, problem, warning } from './result.ts';
import { findProgram } from '../../platform/linux/find-program.ts';
import { outputOf } from './tools.ts';

/** The oldest shim whose bootstrap scribe reads. */
const SHIM_MIN = [1, 6] as const;

const shimCheck = (handler: RuntimeHandler): string => `shim of ${handler.name}`;
const runtimeCheck = (handler: RuntimeHandler): string => `OCI runtime of ${handler.name}`;

const messageOf = (error: unknown): string => (error as Error).message.trim().split('\n')[0] ?? '';

/** io.containerd.runc.v2 is containerd-shim-runc-v2; null for a type that names no program. */
const shimProgram = ({ runtimeType, shimPath }: RuntimeHandler): string | null => {
  if (shimPath !== undefined) return shimPath;
  const [, name, version] = /\.([^./]+)\.(v\d+)$/.exec(runtimeType) ?? [];
  return name === undefined || version === undefined ? null : `containerd-shim-${name}-${version}`;
};

interface ToldVersion extends ShimVersion {
  readonly text: string;
}

const shimVersionIn = (told: string): ToldVersion | null => {
  const [, text, major, minor] = /Version:\s*v?((\d+)\.(\d+)\S*)/.exec(told) ?? [];
  return text === undefined ? null : { text, major: Number(major), minor: Number(minor) };
};

/** What there is of the shim of a handler: null version, it does not tell, and `told` is what it said. */
export type InstalledShim =
  | { readonly kind: 'unnamed' }
  | { readonly kind: 'missing'; readonly wanted: string }
  | { readonly kind: 'found'; readonly program: string; readonly told: string; readonly version: ToldVersion | null };

/** Finds it and runs it for its version; `path` is the PATH that the daemon runs with. Never rejects. */
export const findShim = async (handler: RuntimeHandler, path: string): Promise<InstalledShim> => {
  const wanted = shimProgram(handler);
  if (wanted === null) return { kind: 'unnamed' };
  const program = await findProgram(wanted, path);
  if (program === null) return { kind: 'missing', wanted };
  const told = await outputOf(program, ['-v'], { PATH: path }).catch(messageOf);
  return { kind: 'found', program, told, version: shimVersionIn(told) };
};

export const checkShim = (handler: RuntimeHandler, shim: InstalledShim): DoctorResult => {
  const check = shimCheck(handler);
  if (shim.kind === 'unnamed') {
    return problem(check, `${handler.runtimeType} names no shim`, 'Write a runtime_type like "io.containerd.runc.v2".');
  }
  if (shim.kind === 'missing') {
    const remedy = `Install it (containerd brings containerd-shim-runc-v2), or set shim_path of [runtime.handlers.${handler.name}].`;
    return problem(check, `${shim.wanted} is no executable in PATH`, remedy);
  }
  const { program, told, version } = shim;
  if (version === null) {
    return warning(
      check,
      `${program} does not tell its version: ${messageOf(new Error(told))}`,
      'Check that it is a shim.',
    );
  }
  const { text, major, minor } = version;
  if (major < SHIM_MIN[0] || (major === SHIM_MIN[0] && minor < SHIM_MIN[1])) {
    const remedy = `Install containerd's shim ${SHIM_MIN.join('.')} or later.`;
    return problem(check, `${program} is version ${text}, older than ${SHIM_MIN.join('.')}`, remedy);
  }
  return ok(check, `${program} ${text}`);
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
  const escapes = name === 'runc' ? escapesFromRunc(version) : null;
  if (escapes !== null) {
    const detail = `${program} is runc ${version}; containers can escape from it (${escapes.cves.join(', ')})`;
    return warning(
      check,
      detail,
      `Install ${escapes.fixedIn} or later, unless your distribution has patched this one.`,
    );
  }
  return ok(check, `${program} is ${name} ${version}`);
};
