/** Another process that writes to the disk of the runtimes, as backups, databases and logs of a node do. */
import { join } from 'node:path';
import { run } from '../../test/support/process.ts';

const BLOCKS = 64;

/** Writes 64 MiB and syncs them, again and again, until what it returns is called; that resolves when it has ended. */
export const keepWriting = (dir: string): (() => Promise<void>) => {
  const stopped = new AbortController();
  const writing = (async () => {
    const argv = ['dd', 'if=/dev/zero', `of=${join(dir, 'busy')}`, 'bs=1M', `count=${BLOCKS}`, 'conv=fsync'];
    while (!stopped.signal.aborted) await run(argv);
  })();
  return async () => {
    stopped.abort();
    await writing;
  };
};
