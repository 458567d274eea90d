/**
 * Runs shim binaries, always through the spawner (C15): finds them, asks each once for its version, starts a shim from
 * a bundle, and deletes what a dead shim has left. Knows nothing of connections and tasks.
 */
import { rm, stat, writeFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { Logger } from 'pino';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { type RuntimeHandler, takesRuncOptions } from '../../../domain/model/runtime-handler.ts';
import { isThere } from '../../../platform/linux/exists.ts';
import { findProgram } from '../../../platform/linux/find-program.ts';
import { isAtOrBelow, readMountPoints } from '../../../platform/linux/mounts.ts';
import type { RunResult, Spawner } from '../../../platform/spawner/types.ts';
import type { ShimVersion } from '../../../domain/model/shim-version.ts';
import {
  isToldOfEvents,
  parseShimVersion,
  parseStartOutput,
  type ShimEndpoint,
  shimArguments,
  shimBinaryName,
  shimEnvironment,
  startInput,
} from './bootstrap.ts';
import { quoted } from '../failures.ts';
import { hasProcessesFor } from './identify.ts';
import { checkBundlePath, rootfsOf } from '../paths.ts';
import type { ShimTimings } from '../timings.ts';

const outputBytesMax = 65_536;
/**
 * runc's shim notes the name of the OCI runtime there before it mounts or runs anything for a task. Up to 2.2 its
 * `delete` fails without; there is nothing to delete then.
 */
const runtimeFileName = 'runtime';
/** There while nothing of a bundle can run: the program that was to start its shim was not found. */
const notFoundFileName = 'shim-not-found';

/** A shim that listens, with the version that its binary says; null: it says none. */
export interface StartedShim extends ShimEndpoint {
  readonly version: ShimVersion | null;
}

export interface ShimBinaries {
  /** Path and file of the shim: as long as it is the same, so is what is started. Throws HostLacks. */
  readonly identify: (handler: RuntimeHandler) => Promise<string>;
  /** Runs `start` in the bundle; the shim it prints may be one that runs already. Needs the log FIFO to be open. */
  readonly start: (handler: RuntimeHandler, id: string, bundlePath: string) => Promise<StartedShim>;
  /**
   * Runs `delete` for the bundle: kills what is left of its task, deletes it from the OCI runtime and unmounts its
   * rootfs, without a shim. Doing it again, or for a bundle that is gone, is nothing. So it is where another shim than runc's
   * fails at it, and there is nothing left to delete.
   */
  readonly delete: (handler: RuntimeHandler, id: string, bundlePath: string) => Promise<void>;
}

export interface ShimBinariesOptions {
  readonly spawner: Pick<Spawner, 'run'>;
  readonly timings: ShimTimings;
  readonly eventsAddress: string;
  readonly daemonAddress: string;
  /** Passed on to shims: PATH, in which they look for the OCI runtime, and their directory for temporary files. */
  readonly environment: Readonly<Record<string, string>>;
  readonly log: Pick<Logger, 'warn'>;
}

/** The binary's absolute path: the configured one, or the first of its name in `searchPath`. Throws HostLacks. */
export const findShimBinary = async (handler: RuntimeHandler, searchPath: string): Promise<string> => {
  if (handler.shimPath !== undefined) {
    const configured = isAbsolute(handler.shimPath) ? await findProgram(handler.shimPath, searchPath) : null;
    if (configured !== null) return configured;
    const message = `The shim ${handler.shimPath} of runtime handler '${handler.name}' is no executable file: correct its path in the configuration.`;
    throw new FailureError('HostLacks', message);
  }
  const name = shimBinaryName(handler.runtimeType);
  const found = await findProgram(name, searchPath);
  if (found !== null) return found;
  const message = `${name}, the shim of runtime handler '${handler.name}', is not in PATH (${searchPath}): install it, or configure its path.`;
  throw new FailureError('HostLacks', message);
};

const complaintOf = ({ timedOut, exitCode, signalName, stderr, stdout }: RunResult, timeoutMs: number): string => {
  const said = quoted(Buffer.from(stderr.length > 0 ? stderr : stdout).toString('utf8'));
  if (timedOut) return `it did not end within ${timeoutMs} ms`;
  return `it ended with ${exitCode === null ? `signal ${signalName ?? 'unknown'}` : `status ${exitCode}`}: ${said}`;
};

/** Of a task: something runs for it, or its root file system is mounted. */
const isAnythingLeft = async (id: string, bundlePath: string): Promise<boolean> => {
  const rootfs = rootfsOf(bundlePath);
  return (await readMountPoints()).some((path) => isAtOrBelow(path, rootfs)) || (await hasProcessesFor(id));
};

export const createShimBinaries = (options: ShimBinariesOptions): ShimBinaries => {
  const { spawner, timings, eventsAddress, daemonAddress, environment, log } = options;
  const addressFor = (handler: RuntimeHandler): string | null => (isToldOfEvents(handler) ? eventsAddress : null);
  /** Keyed by path and what stat tells of the file: a binary that was replaced is asked again. */
  const versions = new Map<string, { readonly file: string; readonly version: Promise<ShimVersion | null> }>();

  const run = async (
    handler: RuntimeHandler,
    command: string,
    args: readonly string[],
    cwd: string,
    stdin: Uint8Array = new Uint8Array(0),
  ): Promise<Uint8Array> => {
    const timeoutMs = timings.binaryMs;
    const env = shimEnvironment(addressFor(handler), daemonAddress, environment);
    const result = await spawner.run({ command, args, env, cwd, stdin, timeoutMs, outputBytesMax });
    if (result.exitCode === 0 && !result.timedOut && !result.truncated) return result.stdout;
    const complaint = result.truncated ? 'it printed more than any shim does' : complaintOf(result, timeoutMs);
    throw new FailureError('ShimFailed', `The shim binary ${command} failed at '${args.at(-1) ?? ''}': ${complaint}.`);
  };

  const fileOf = async (path: string): Promise<string> => {
    const { dev, ino, mtimeMs, size } = await stat(path);
    return `${dev} ${ino} ${mtimeMs} ${size}`;
  };

  const versionOf = async (handler: RuntimeHandler, path: string): Promise<ShimVersion | null> => {
    const file = await fileOf(path);
    const known = versions.get(path);
    if (known?.file === file) return known.version;
    const version = run(handler, path, ['-v'], '/').then((stdout) =>
      parseShimVersion(Buffer.from(stdout).toString('utf8')),
    );
    const entry = { file, version };
    versions.set(path, entry);
    version.catch(() => {
      if (versions.get(path) === entry) versions.delete(path);
    });
    return version;
  };

  const find = (handler: RuntimeHandler): Promise<string> => findShimBinary(handler, environment['PATH'] ?? '');

  return {
    identify: async (handler) => {
      const path = await find(handler);
      return `${path} ${await fileOf(path)}`;
    },
    start: async (handler, id, bundlePath) => {
      checkBundlePath(id, bundlePath);
      const notFound = join(bundlePath, notFoundFileName);
      const path = await find(handler).catch(async (error: unknown) => {
        // Without the note the program is missed once more, when what it left is to be deleted.
        await writeFile(notFound, '').catch(() => undefined);
        throw error;
      });
      await rm(notFound, { force: true });
      // A shim that does not know -v is not containerd's: it gets what all bear.
      const version = await versionOf(handler, path).catch(() => null);
      const stdin = startInput(version, id, addressFor(handler), daemonAddress);
      const args = shimArguments({ action: 'start', id, bundlePath, daemonAddress });
      return { ...parseStartOutput(await run(handler, path, args, bundlePath, stdin)), version };
    },
    delete: async (handler, id, bundlePath) => {
      checkBundlePath(id, bundlePath);
      const needed = takesRuncOptions(handler) ? join(bundlePath, runtimeFileName) : bundlePath;
      if (!(await isThere(needed)) || (await isThere(join(bundlePath, notFoundFileName)))) return;
      const args = shimArguments({ action: 'delete', id, bundlePath, daemonAddress });
      const path = await find(handler);
      try {
        await run(handler, path, args, bundlePath);
      } catch (error) {
        // Some fail where they find no note of a task, as gVisor's do: then they have made none, or deleted it before.
        if (takesRuncOptions(handler) || (await isAnythingLeft(id, bundlePath))) throw error;
        log.warn({ id, error: messageOf(error) }, 'a shim binary fails to delete a task of which nothing is left');
      }
    },
  };
};
