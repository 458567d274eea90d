/**
 * What lies at the host paths that a container is to have mounted: a missing one is made as a directory, because
 * kubelet leaves hostPath volumes without a type to the runtime; links are resolved, so that the spec names what was
 * looked at; and the mount it lies on says how mounts below it spread.
 */
import { realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { MountFact } from '../../domain/model/container-facts.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { makeDirectories } from '../../platform/linux/make-directories.ts';
import { type MountInfo, mountInfoOf, readMountLines } from '../../platform/linux/mounts.ts';
import { errorCodeOf } from '../../platform/error-code.ts';

/** Flags of a mount that whoever mounts it again without being its owner has to keep. */
const KEPT_FLAGS: ReadonlySet<string> = new Set([
  'ro',
  'nosuid',
  'nodev',
  'noexec',
  'noatime',
  'nodiratime',
  'relatime',
]);

/** Of a path that leads nowhere, whatever anybody does about the node: links in a circle, a file for a directory. */
const NOWHERE: ReadonlySet<string> = new Set(['ELOOP', 'ENOTDIR', 'ENAMETOOLONG']);

const explain = (hostPath: string, error: unknown): FailureError => {
  const reason = NOWHERE.has(errorCodeOf(error) ?? '') ? 'InvalidField' : 'HostFailed';
  return new FailureError(reason, `mounts.host_path ${hostPath} cannot be used: ${messageOf(error)}`, {
    cause: error,
  });
};

async function resolved(hostPath: string): Promise<string> {
  try {
    return await realpath(hostPath);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw error;
    await makeDirectories(hostPath, 0o755);
    return realpath(hostPath);
  }
}

/** Lines of the mount table by the point that a mount is seen at: of several at one point the last, which covers the others. */
export type MountTable = ReadonlyMap<string, string>;

export const readMountTable = async (): Promise<MountTable> =>
  new Map((await readMountLines()).map(({ mountPoint, line }) => [mountPoint, line]));

/** The mount that a path without links lies on: the innermost one. */
function mountOf(table: MountTable, path: string): MountInfo | null {
  const line = table.get(path);
  if (line !== undefined) return mountInfoOf(line);
  return path === '/' ? null : mountOf(table, dirname(path));
}

/** Rejects with HostFailed when the path cannot be resolved or made, InvalidField when it leads nowhere. `table` is the daemon's mount table. */
export async function inspectMountSource(hostPath: string, table: () => Promise<MountTable>): Promise<MountFact> {
  try {
    const realPath = await resolved(hostPath);
    const [stats, mounts] = await Promise.all([stat(realPath), table()]);
    const mount = mountOf(mounts, realPath);
    return {
      hostPath,
      realPath,
      isDirectory: stats.isDirectory(),
      propagation: mount?.propagation ?? 'private',
      flags: mount?.options.filter((option) => KEPT_FLAGS.has(option)) ?? [],
    };
  } catch (error) {
    throw explain(hostPath, error);
  }
}
