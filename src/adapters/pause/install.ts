/**
 * Puts the pause program where pods' sandbox tasks find it: a root file system with nothing else in it but the mount
 * points that an OCI runtime would otherwise make there itself. Shared by all pods, which see it read-only.
 */
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pauseProgram } from './pause-program.ts';

const mountPoints = ['proc', 'dev', 'sys', 'etc'];
/** Containers that run as somebody else have to reach it too. */
const DIRECTORY_MODE = 0o755;
const PROGRAM_MODE = 0o555;

export const pauseRootfsIn = (dir: string): string => join(dir, 'rootfs');

/**
 * Makes <dir>/rootfs/pause for this machine, whole or not at all, and returns the path of the root file system. What
 * is there already and right is left as it is. Rejects with FailureError HostLacks on an architecture without one.
 */
export const installPause = async (dir: string): Promise<string> => {
  const rootfs = pauseRootfsIn(dir);
  const path = join(rootfs, 'pause');
  const program = pauseProgram(process.arch);
  await Promise.all(mountPoints.map((name) => mkdir(join(rootfs, name), { recursive: true, mode: DIRECTORY_MODE })));
  await writeFile(join(rootfs, 'etc/resolv.conf'), '');
  const present = await readFile(path).catch(() => null);
  if (present === null || !present.equals(program)) {
    const unfinished = `${path}.new`;
    await writeFile(unfinished, program);
    await chmod(unfinished, PROGRAM_MODE);
    await rename(unfinished, path);
  }
  return rootfs;
};
