/**
 * Where the shim adapter keeps what it makes: all below the state directory, which ends with the boot. Ids become file
 * names here and nowhere else, after a check that none leads out of its directory.
 */
import { basename, isAbsolute, join } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { shimNamespace } from './process/bootstrap.ts';

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

/** Returns the id, or throws InvalidField when it can't be a file name. */
export const checkedId = (id: string): string => {
  if (idPattern.test(id)) return id;
  throw new FailureError(
    'InvalidField',
    `${JSON.stringify(id.slice(0, 200))} cannot be an id: letters, digits, '_', '.' and '-' only.`,
  );
};

/** Shims look for a bundle by the id beside another bundle, so its directory has to be named so. */
export const checkBundlePath = (id: string, bundlePath: string): void => {
  if (basename(bundlePath) === checkedId(id)) return;
  throw new FailureError(
    'InvalidField',
    `The bundle ${bundlePath} has to be in a directory named ${id}, where shims look for it.`,
  );
};

/** Where a bundle has the root file system of its task mounted. */
export const rootfsOf = (bundlePath: string): string => join(bundlePath, 'rootfs');

/** Where a shim says that the bundle is; null where it cannot be. */
export const bundleOf = (id: string, told: string): string | null =>
  isAbsolute(told) && basename(told) === id ? told : null;

export interface ShimPaths {
  /** Where shims report events; the same after a restart, as running shims know no other. */
  readonly eventsSocket: string;
  /** Of each shim that may be kept when its pod has gone: where it runs, by its id. */
  readonly shimsDir: string;
  /** The OCI runtimes' own state. */
  readonly runtimeRoot: string;
  /** Of one container. */
  readonly runtimeState: (containerId: string) => string;
  /** For short-lived files that shims make (process specs hold env values, console sockets). */
  readonly temporaryDir: string;
  /** FIFOs of containers. */
  readonly ioRoot: string;
  readonly ioDir: (containerId: string) => string;
  /** FIFOs of execs: worth nothing to a later daemon. */
  readonly execRoot: string;
  readonly execFifo: (execId: string, stream: ExecStream) => string;
}

export type ExecStream = 'stdin' | 'stdout' | 'stderr';

export const shimPaths = (stateDir: string): ShimPaths => {
  const ioRoot = join(stateDir, 'io');
  const execRoot = join(stateDir, 'exec');
  const runtimeRoot = join(stateDir, 'runtime');
  return {
    eventsSocket: join(stateDir, 'events.ttrpc'),
    shimsDir: join(stateDir, 'shims'),
    runtimeRoot,
    runtimeState: (containerId) => join(runtimeRoot, shimNamespace, checkedId(containerId)),
    temporaryDir: join(stateDir, 'tmp'),
    ioRoot,
    ioDir: (containerId) => join(ioRoot, checkedId(containerId)),
    execRoot,
    execFifo: (execId, stream) => join(execRoot, `${checkedId(execId)}.${stream}`),
  };
};
