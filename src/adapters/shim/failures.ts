/**
 * Turns what goes wrong with a shim into the failures of the catalogue. A shim's own words are passed on (they say what
 * the OCI runtime could not do), cut to a length that a record can hold.
 */
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { RuntimeHandler } from '../../domain/model/runtime-handler.ts';
import { isClosed, isTimeout, TtrpcStatusError } from '../../platform/ttrpc/status.ts';

const messageLengthMax = 2048;

/** Text from outside, made fit for a message: bounded, one line. */
export const quoted = (text: string): string => {
  const line = text.trim().replaceAll(/\s*\n\s*/g, '; ');
  return line.length <= messageLengthMax ? line : `${line.slice(0, messageLengthMax)}…`;
};

/** `attempted` says what was being done, as in "create the task of container abc". */
const asFailure = (error: unknown, attempted: string): FailureError => {
  if (error instanceof FailureError) return error;
  const message = `Could not ${attempted}: ${quoted(messageOf(error))}.`;
  if (isTimeout(error)) return new FailureError('TimedOut', message, { cause: error });
  if (isClosed(error)) return new FailureError('ShimFailed', message, { cause: error });
  if (error instanceof TtrpcStatusError) return new FailureError('RuntimeFailed', message, { cause: error });
  return new FailureError('HostFailed', message, { cause: error });
};

/** What runc's shim says of an OCI runtime that it could not run at all, by name or by path. */
const RUNTIME_MISSING =
  /unable to retrieve OCI runtime error \(.*\): (?:exec: .*: executable file not found in \$PATH|fork\/exec .*: no such file or directory)/;

/**
 * What OCI runtimes say of what was asked for and cannot be had, with what that is in CRI's words, and whose fault it is: the
 * request's, or this node's, where another may have it. A program or a hook may be called sysctl, and a mount or a working
 * directory be asked for below /proc/sys: none has to do with parameters, nor has cap_last_cap, which runc reads there and a
 * mask may hide.
 */
const IMPOSSIBLE: readonly (readonly [RegExp, 'InvalidField' | 'HostLacks', string])[] = [
  [
    /^(?!.*(?:\bexec: |executable file|error mounting |mount request: |\bmkdir |\bhook #|cap_last_cap)).*(?:\bsysctl\b|\/proc\/sys\/)/s,
    'InvalidField',
    'linux.sysctls has a parameter that a pod cannot set so',
  ],
  [/too many levels of symbolic links/, 'InvalidField', 'a path of mounts leads round in a circle of links'],
  [
    /\bis not a valid \w+ for seccomp\b|\b(?:unknown|invalid) seccomp (?:option|action|syscall) |\bseccomp flag(?:s are not yet supported| \S+ is not known)\b|\bto seccomp filter: Set\w+ requires libseccomp\b/,
    'InvalidField',
    'the profile that linux.security_context.seccomp names has a word that the OCI runtime does not know',
  ],
  [
    /\buids and gids must be in range\b/,
    'InvalidField',
    'run_as_user, run_as_group or supplemental_groups of linux.security_context is beyond what the OCI runtime can give',
  ],
  [
    // The last of what runc 1.4 says, which gives the process its streams first.
    /\bcannot set ?[ug]id to unmapped (?:user|[ug]id \d+) in user namespace\b|\b(?:set(?:groups|res[ug]id)\b[^:]*|unable to setup user: chown \S+): invalid argument\b/i,
    'InvalidField',
    'run_as_user, run_as_group or supplemental_groups of linux.security_context has an id that the user namespace of the pod does not map',
  ],
  [
    /\bwrite \S*\bcpuset\.(?:cpus|mems)\b\S*: (?:numerical result out of range|invalid argument|permission denied)/i,
    'HostLacks',
    'its cpuset_cpus or cpuset_mems name some that the node, or the cgroup of the pod, does not have',
  ],
];

/** As asFailure, of something that the OCI runtime was asked for: what cannot be had is told in the words of the request. */
export const asRequestFailure = (error: unknown, attempted: string): FailureError => {
  if (!(error instanceof TtrpcStatusError)) return asFailure(error, attempted);
  const impossible = IMPOSSIBLE.find(([words]) => words.test(error.message));
  if (impossible === undefined) return asFailure(error, attempted);
  const [, reason, problem] = impossible;
  const message = `Could not ${attempted}, because ${problem}: ${quoted(messageOf(error))}.`;
  return new FailureError(reason, message, { cause: error });
};

/** As asRequestFailure, of a task that `handler` has; an OCI runtime that is not there is a fault of the node's, with a remedy. */
export const asTaskFailure = (
  error: unknown,
  attempted: string,
  { name, binaryName }: RuntimeHandler,
): FailureError => {
  if (!(error instanceof TtrpcStatusError) || !RUNTIME_MISSING.test(error.message))
    return asRequestFailure(error, attempted);
  const message = `Could not ${attempted}: ${binaryName}, the OCI runtime of runtime handler '${name}', is not there: install it, or set binary_name of [runtime.handlers.${name}].`;
  return new FailureError('HostLacks', message, { cause: error });
};

/** There is nobody to speak to, or nobody who answers: whether a call was carried out can't be told. */
export const isUnreachable = (error: unknown): boolean =>
  isClosed(error) || isTimeout(error) || (error instanceof FailureError && error.failure.reason === 'ShimFailed');

/** Runs `work`, and rejects with asFailure's failure when it does not succeed. */
export const attempting = async <T>(attempted: string, work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    throw asFailure(error, attempted);
  }
};
