/** Temporary directories, removed with everything in them when their owner ends. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Owner, onCleanup } from './cleanup.ts';

const makeIn = async (owner: Owner, parent: string): Promise<string> => {
  const dir = await mkdtemp(join(parent, 'scribe-'));
  onCleanup(owner, () => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  return dir;
};

/** Makes an empty directory; its path is short, so that Unix sockets fit in it. */
export const tempDir = (owner: Owner): Promise<string> => makeIn(owner, tmpdir());

/** The same on a tmpfs, as a node's /run is. */
export const tempDirInMemory = (owner: Owner): Promise<string> => makeIn(owner, '/dev/shm');
