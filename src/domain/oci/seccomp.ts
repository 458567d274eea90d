/**
 * Which seccomp profile a container gets: none, the default one, or a file of the node that the inspect adapter has
 * read. The content of the file is checked here, so that a bad one is a clear refusal and not a runtime's riddle.
 */
import { ProfileType, type SecurityProfile } from '../model/cri.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import { isObject, type JsonObject } from '../values/json.ts';
import { isAbsolute } from './paths.ts';
import { refuse, refuseField, shown } from './refuse.ts';
import { defaultSeccomp } from './seccomp-default.ts';
import { profileOfText } from './security-profile.ts';
import type { OciSeccomp, OciSeccompArg, OciSyscall } from '../model/oci.ts';

const SECCOMP_FIELD = 'linux.security_context.seccomp';

/** The deprecated seccomp_profile_path in the words of the newer field. */
const fromPath = (path: string): SecurityProfile =>
  profileOfText(path) ??
  refuseField(
    'linux.security_context.seccomp_profile_path',
    `is ${shown(path)}: it must be empty, unconfined, runtime/default or localhost/<absolute path>`,
  );

interface SeccompFields {
  readonly privileged?: boolean;
  readonly seccomp?: SecurityProfile;
  readonly seccompProfilePath?: string;
}

/** null: no filter. A privileged container has none, whatever it asks for. */
export function seccompProfileOf(context: SeccompFields | undefined): SecurityProfile | null {
  if (context === undefined || context.privileged) return null;
  const profile = context.seccomp ?? (context.seccompProfilePath ? fromPath(context.seccompProfilePath) : null);
  return profile?.profileType === ProfileType.Unconfined ? null : profile;
}

/** Path of the profile file that has to be read, null when there is none to read. */
export const seccompFileOf = (profile: SecurityProfile | null): string | null =>
  profile?.profileType === ProfileType.Localhost ? (profile.localhostRef ?? '') : null;

export function checkSeccomp(context: SeccompFields | undefined): void {
  const file = seccompFileOf(seccompProfileOf(context));
  if (file === null) return;
  if (!isAbsolute(file)) {
    refuseField(`${SECCOMP_FIELD}.localhost_ref`, `is ${shown(file)}: give the absolute path of a profile on the node`);
  }
}

function requireFilters(node: NodeFacts): void {
  if (!node.seccomp) {
    refuse('HostLacks', `${SECCOMP_FIELD} asks for a profile, but this kernel has no seccomp filters: use Unconfined`);
  }
}

/** The pause task's. A Localhost profile is not in the spec yet: PreparePodSandbox reads it and adds it. */
export function pauseSeccomp(profile: SecurityProfile | null, node: NodeFacts): OciSeccomp | undefined {
  if (profile === null) return undefined;
  requireFilters(node);
  return seccompFileOf(profile) === null ? defaultSeccomp(node, []) : undefined;
}

/** `file` is the parsed content of a Localhost profile; `capabilities` the container's bounding set. */
export function ociSeccomp(
  profile: SecurityProfile | null,
  node: NodeFacts,
  capabilities: readonly string[],
  file: unknown,
): OciSeccomp | undefined {
  if (profile === null) return undefined;
  requireFilters(node);
  const path = seccompFileOf(profile);
  return path === null ? defaultSeccomp(node, capabilities) : parseProfile(file, path);
}

/**
 * The parsed content of a Localhost profile in the OCI runtime specification's words; a field that it does not know is
 * left out.
 * @throws {FailureError} InvalidField, naming what of the file at `path` is wrong
 */
export function parseProfile(file: unknown, path: string): OciSeccomp {
  const bad = (problem: string): never => refuseField(`${SECCOMP_FIELD}.localhost_ref`, `${shown(path)}: ${problem}`);

  const text = (value: unknown, name: string, form: RegExp): string =>
    typeof value === 'string' && form.test(value) ? value : bad(`${name} must be text like ${form.source}`);
  const list = <T>(value: unknown, name: string, item: (value: unknown, name: string) => T): readonly T[] =>
    Array.isArray(value) ? value.map((one, index) => item(one, `${name}[${index}]`)) : bad(`${name} must be a list`);
  const whole = (value: unknown, name: string): number =>
    Number.isSafeInteger(value) && (value as number) >= 0
      ? (value as number)
      : bad(`${name} must be a whole number from 0 to 2^53-1`);
  const record = (value: unknown, name: string): JsonObject =>
    isObject(value) ? value : bad(`${name} must be an object`);

  const action = (value: unknown, name: string): string => text(value, name, /^SCMP_ACT_[A-Z_]+$/);
  const argument = (value: unknown, name: string): OciSeccompArg => {
    const fields = record(value, name);
    return {
      index: whole(fields['index'], `${name}.index`),
      value: whole(fields['value'], `${name}.value`),
      ...(fields['valueTwo'] === undefined ? {} : { valueTwo: whole(fields['valueTwo'], `${name}.valueTwo`) }),
      op: text(fields['op'], `${name}.op`, /^SCMP_CMP_[A-Z_]+$/),
    };
  };
  const syscall = (value: unknown, name: string): OciSyscall => {
    const fields = record(value, name);
    return {
      names: list(fields['names'], `${name}.names`, (one, at) => text(one, at, /^[a-z0-9_]+$/)),
      action: action(fields['action'], `${name}.action`),
      ...(typeof fields['errnoRet'] !== 'number' ? {} : { errnoRet: whole(fields['errnoRet'], `${name}.errnoRet`) }),
      ...(!Array.isArray(fields['args']) ? {} : { args: list(fields['args'], `${name}.args`, argument) }),
    };
  };

  const profile = record(file, 'the profile');
  const { architectures, flags, defaultErrnoRet, listenerPath, listenerMetadata, syscalls } = profile;
  return {
    defaultAction: action(profile['defaultAction'], 'defaultAction'),
    ...(typeof defaultErrnoRet !== 'number' ? {} : { defaultErrnoRet: whole(defaultErrnoRet, 'defaultErrnoRet') }),
    ...(!architectures
      ? {}
      : { architectures: list(architectures, 'architectures', (one, at) => text(one, at, /^SCMP_ARCH_[A-Z0-9_]+$/)) }),
    ...(!flags ? {} : { flags: list(flags, 'flags', (one, at) => text(one, at, /^SECCOMP_FILTER_FLAG_[A-Z_]+$/)) }),
    ...(!listenerPath ? {} : { listenerPath: text(listenerPath, 'listenerPath', /^\//) }),
    ...(!listenerMetadata ? {} : { listenerMetadata: text(listenerMetadata, 'listenerMetadata', /./) }),
    ...(!syscalls ? {} : { syscalls: list(syscalls, 'syscalls', syscall) }),
  };
}
