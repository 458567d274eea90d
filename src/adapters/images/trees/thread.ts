/**
 * The thread that removes and completes directory trees too large for the daemon's own loop. Follows no link,
 * and goes on past what vanishes meanwhile. One tree after the other.
 */
import { closeSync, type Dir, lstatSync, opendirSync, openSync, rmdirSync, rmSync, unlinkSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../../domain/model/errors.ts';
import { syncFileSystemNow } from '../../../platform/linux/jail.ts';
import { goBehind } from '../../../platform/linux/own-process.ts';
import { type ThreadIsUp, tellUp } from '../../../platform/native-thread.ts';
import { waitingLayerCalls } from './layer-calls.ts';
import { copyLooks } from './undescribed-directories.ts';
import { markOpaque } from './opaque.ts';
import type { FromTreeThread, ToTreeThread } from './trees.ts';

/** So many files are removed at a time where others are to come in between. */
const REMOVED_AT_ONCE = 500;

/** true when more of it is left. */
const removeSome = (root: string): boolean => {
  let removed = 0;
  /** false: there is more. Names are bytes, here in latin1; a directory is read on while it is emptied. */
  const empty = (directory: Dir, path: string): boolean => {
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (removed >= REMOVED_AT_ONCE) return false;
      const name = `${path}/${entry.name}`;
      if (!entry.isDirectory()) unlinkSync(Buffer.from(name, 'latin1'));
      else if (!removeDirectory(name)) return false;
      removed += 1;
    }
    return true;
  };
  const removeDirectory = (path: string): boolean => {
    const bytes = Buffer.from(path, 'latin1');
    const directory = opendirSync(bytes, { encoding: 'latin1' });
    try {
      if (!empty(directory, path)) return false;
    } finally {
      directory.closeSync();
    }
    rmdirSync(bytes);
    return true;
  };
  const stats = lstatSync(root, { throwIfNoEntry: false });
  if (stats === undefined) return false;
  if (stats.isDirectory()) return !removeDirectory(Buffer.from(root).toString('latin1'));
  unlinkSync(root);
  return false;
};

const sync = (path: string): void => {
  const fd = openSync(path, 'r');
  try {
    syncFileSystemNow(fd);
  } finally {
    closeSync(fd);
  }
};

/** Every call waits here, so that this is done before the next message is taken. */
const answer = async (request: ToTreeThread): Promise<FromTreeThread> => {
  try {
    switch (request.kind) {
      case 'remove':
        rmSync(request.path, { recursive: true, force: true });
        break;
      case 'removeSome':
        return { id: request.id, isLeft: removeSome(request.path), error: null };
      case 'copyLooks':
        await copyLooks(request.looks, waitingLayerCalls);
        break;
      case 'markOpaque':
        await markOpaque(request.directories, waitingLayerCalls);
        break;
      case 'sync':
        sync(request.path);
        break;
    }
    return { id: request.id, isLeft: false, error: null };
  } catch (error) {
    return { id: request.id, isLeft: false, error: messageOf(error) };
  }
};

tellUp(workerData as ThreadIsUp);
goBehind();
parentPort?.on('message', (request: ToTreeThread) => {
  void answer(request).then((said) => parentPort?.postMessage(said));
});
