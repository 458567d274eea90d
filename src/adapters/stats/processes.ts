/**
 * What a container's processes hold open, from their own directories. Of very many processes or files, only the first
 * are looked at: no container decides how much is read.
 */
import { opendir, readlink, stat } from 'node:fs/promises';
import { errorCodeOf } from '../../platform/error-code.ts';
import { readStart } from './read-start.ts';
import type { CgroupFigures } from './types.ts';

const PROCESSES_MAX = 64;
/** Of all processes of the container together. */
const LINKS_MAX = 1024;

type ProcessFigures = Pick<CgroupFigures, 'fileDescriptors' | 'sockets' | 'openFilesMax'>;

interface Open {
  readonly files: number;
  readonly sockets: number;
  readonly lookedAt: number;
}

const NOTHING: Open = { files: 0, sockets: 0, lookedAt: 0 };

/** A process that ends while it is looked at, and a file that it closes, are as good as gone before. */
const GONE: readonly (string | undefined)[] = ['ENOENT', 'ESRCH', 'EACCES'];

const unlessGone = async <T>(work: () => Promise<T>, otherwise: T): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (GONE.includes(errorCodeOf(error))) return otherwise;
    throw error;
  }
};

const openOf = (pid: string, linksMax: number): Promise<Open> =>
  unlessGone(async () => {
    const path = `/proc/${pid}/fd`;
    // Since Linux 6.2 its size is how many there are.
    const { size } = await stat(path);
    let [sockets, lookedAt] = [0, 0];
    for await (const { name } of await opendir(path)) {
      if (lookedAt >= linksMax) break;
      lookedAt += 1;
      const target = await unlessGone(() => readlink(`${path}/${name}`), '');
      if (target.startsWith('socket:')) sockets += 1;
    }
    return { files: Math.max(size, lookedAt), sockets, lookedAt };
  }, NOTHING);

/** `listed`: the text of cgroup.procs. */
export const processFigures = async (listed: string | undefined, buffer: Buffer): Promise<ProcessFigures> => {
  const pids = (listed ?? '').split('\n', PROCESSES_MAX).filter((line) => /^[1-9]\d*$/.test(line));
  let all = NOTHING;
  for (const pid of pids) {
    const { files, sockets, lookedAt } = await openOf(pid, LINKS_MAX - all.lookedAt);
    all = { files: all.files + files, sockets: all.sockets + sockets, lookedAt: all.lookedAt + lookedAt };
  }
  const limits = pids[0] === undefined ? undefined : await readStart(`/proc/${pids[0]}/limits`, buffer);
  const openFilesMax = /^Max open files +(\d+)/m.exec(limits ?? '')?.[1];
  return {
    fileDescriptors: BigInt(all.files),
    sockets: BigInt(all.sockets),
    openFilesMax: openFilesMax === undefined ? undefined : BigInt(openFilesMax),
  };
};
