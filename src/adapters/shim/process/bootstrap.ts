/**
 * How shims are launched, as pure functions: binary names, versions, command lines, what `start` is fed and what it
 * prints, for containerd's shims from 1.6 to 2.4. Runs nothing and reads nothing.
 *
 *   1.6, 1.7     stdin empty             stdout: the address                       task service v2
 *   2.0 to 2.2   stdin empty             stdout: JSON {version, address, protocol} task service v3
 *   2.3          stdin BootstrapParams   stdout: BootstrapResult (protobuf)        task service v3
 */
import * as z from 'zod';
import { FailureError } from '../../../domain/model/errors.ts';
import { readAs } from '../../../platform/foreign-json.ts';
import { BootstrapParams, BootstrapResult, LogLevel } from '../../../wire/runtime/bootstrap/v1/bootstrap.ts';
import type { RuntimeHandler } from '../../../domain/model/runtime-handler.ts';
import type { ShimVersion } from '../../../domain/model/shim-version.ts';

/** The namespace that all of a kubelet's containers live in. */
export const shimNamespace = 'k8s.io';

/** Where a shim listens, and which version of the task service it speaks. */
export interface ShimEndpoint {
  readonly address: string;
  readonly taskApi: 2 | 3;
}

/** io.containerd.runc.v2 runs containerd-shim-runc-v2. Throws InvalidField for what names no binary. */
export const shimBinaryName = (runtimeType: string): string => {
  const parts = runtimeType.split('.');
  const [name, version] = parts.slice(-2);
  const plain = /^[A-Za-z0-9_-]+$/;
  if (parts.length < 2 || name === undefined || version === undefined || !plain.test(name) || !plain.test(version)) {
    throw new FailureError(
      'InvalidField',
      `The runtime type '${runtimeType}' names no shim: it has to end in a name and a version, as io.containerd.runc.v2 does.`,
    );
  }
  return `containerd-shim-${name}-${version}`;
};

/** The version in what a shim prints for -v, or null when it says none. */
export const parseShimVersion = (text: string): ShimVersion | null => {
  const [, major, minor] = /^\s*Version:\s+v?(\d{1,6})\.(\d{1,6})/m.exec(text) ?? [];
  return major === undefined || minor === undefined ? null : { major: Number(major), minor: Number(minor) };
};

/**
 * Shims from 2.3 on read BootstrapParams. An older one refuses to start when fed them, so one that does not say its
 * version gets nothing, which all released shims bear.
 */
const readsBootstrapParams = (version: ShimVersion | null): boolean =>
  version !== null && (version.major > 2 || (version.major === 2 && version.minor >= 3));

export interface ShimInvocation {
  readonly action: 'start' | 'delete';
  readonly id: string;
  readonly bundlePath: string;
  /** Names this daemon: runc's shim hashes it into its socket's name, so that daemons do not meet there. */
  readonly daemonAddress: string;
}

const publishBinary = 'scribe';

/** The command line. `delete` looks for its bundle beside the working directory, under the id. */
export const shimArguments = ({ action, id, bundlePath, daemonAddress }: ShimInvocation): string[] => [
  ...['-namespace', shimNamespace],
  ...['-address', daemonAddress],
  ...['-publish-binary', publishBinary],
  ...['-id', id],
  ...(action === 'delete' ? ['-bundle', bundlePath] : []),
  action,
];

/**
 * Shims that end themselves, with all that they run, when nobody takes an event, as while the daemon restarts: gVisor's does, if it
 * was told where events go. Exits are known by the reply to Wait, and kills for lack of memory are counted, so such a shim is told
 * nothing, as CRI-O does.
 */
export const isToldOfEvents = ({ runtimeType }: Pick<RuntimeHandler, 'runtimeType'>): boolean =>
  !runtimeType.startsWith('io.containerd.runsc.');

/** The environment of `start` and `delete`, and of the shim that stays: nothing of the daemon's own but `inherited`. */
export const shimEnvironment = (
  eventsAddress: string | null,
  daemonAddress: string,
  inherited: Readonly<Record<string, string>>,
): Record<string, string> => ({
  ...inherited,
  ...(eventsAddress === null ? {} : { TTRPC_ADDRESS: eventsAddress }),
  GRPC_ADDRESS: daemonAddress,
  NAMESPACE: shimNamespace,
  MAX_SHIM_VERSION: '2',
  GOMAXPROCS: '2',
});

/** What `start` reads from stdin, for a shim of that version. */
export const startInput = (
  version: ShimVersion | null,
  id: string,
  eventsAddress: string | null,
  daemonAddress: string,
): Uint8Array =>
  readsBootstrapParams(version)
    ? BootstrapParams.encode(
        BootstrapParams.fromPartial({
          instanceId: id,
          namespace: shimNamespace,
          logLevel: LogLevel.LOG_LEVEL_INFO,
          containerdTtrpcAddress: eventsAddress ?? '',
          containerdGrpcAddress: daemonAddress,
          containerdBinary: publishBinary,
        }),
      ).finish()
    : new Uint8Array(0);

interface StartOutput {
  readonly version: number;
  readonly address: string;
  readonly protocol: string;
}

const parseProtobuf = (stdout: Uint8Array): StartOutput | null => {
  try {
    const { version, address, protocol } = BootstrapResult.decode(stdout);
    return version > 0 && address !== '' ? { version, address, protocol } : null;
  } catch {
    return null;
  }
};

const ttrpcProtocol = 'ttrpc';
const addressBytesMax = 1024;

const startOutputSchema: z.ZodType<StartOutput> = z.object({
  version: z.number().min(2),
  address: z.string(),
  protocol: z
    .string()
    .optional()
    .catch(undefined)
    .transform((protocol) => protocol ?? ttrpcProtocol),
});

/** What `start` printed, in whichever of the three forms. Throws ShimFailed when scribe can't speak to such a shim. */
export const parseStartOutput = (stdout: Uint8Array): ShimEndpoint => {
  const text = Buffer.from(stdout).toString('utf8').trim();
  const { version, address, protocol } =
    parseProtobuf(stdout) ??
    readAs(startOutputSchema, text) ??
    ({ version: 2, address: text, protocol: ttrpcProtocol } satisfies StartOutput);
  if (protocol !== ttrpcProtocol && protocol !== '') {
    throw new FailureError('ShimFailed', `The shim speaks ${shown(protocol)}; scribe speaks ttrpc to shims only.`);
  }
  if (version !== 2 && version !== 3) {
    throw new FailureError(
      'ShimFailed',
      `The shim speaks version ${version} of the task service; scribe speaks 2 and 3.`,
    );
  }
  socketPathOf(address);
  return { address, taskApi: version };
};

const shown = (text: string): string => JSON.stringify(text.slice(0, 200));
const unixPrefix = 'unix://';

/** The address as node:net wants it: a path, or an abstract name. Throws ShimFailed for anything else. */
export const socketPathOf = (address: string): string => {
  // Text that a confused shim printed instead of an address must not be taken for an abstract name.
  const isName = /^[\x21-\x7e]+$/.test(address) && address.length <= addressBytesMax;
  if (isName && address.startsWith(`${unixPrefix}/`)) return address.slice(unixPrefix.length);
  if (isName && !address.includes(':')) return `\0${address}`;
  throw new FailureError('ShimFailed', `The shim listens at ${shown(address)}, which is no unix socket.`);
};
