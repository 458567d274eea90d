/** Another process that writes to the disk of the runtimes, as backups, databases and logs of a node do. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../../test/support/process.ts';

const BLOCKS = 64;

/**
 * Writes 64 MiB and syncs them, again and again, until what it returns is called; that resolves when it has ended. In a
 * directory of its own, since both runtimes watch the one above that of their networks.
 */
export const keepWriting = (dir: string): (() => Promise<void>) => {
  const stopped = new AbortController();
  const writing = (async () => {
    const own = join(dir, 'busy');
    await mkdir(own, { recursive: true });
    const argv = ['dd', 'if=/dev/zero', `of=${join(own, 'written')}`, 'bs=1M', `count=${BLOCKS}`, 'conv=fsync'];
    while (!stopped.signal.aborted) await run(argv);
  })();
  return async () => {
    stopped.abort();
    await writing;
  };
};
