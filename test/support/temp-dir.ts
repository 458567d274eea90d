/** Temporary directories, removed with everything in them when their owner ends. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Owner, onCleanup } from './cleanup.ts';

/** Makes an empty directory; its path is short, so that Unix sockets fit in it. */
export const tempDir = async (owner: Owner): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-'));
  onCleanup(owner, () => rm(dir, { recursive: true, force: true, maxRetries: 3 }));
  return dir;
};
