/**
 * The thread that removes, measures and completes directory trees too large for the daemon's own loop. Follows no link,
 * and goes on past what vanishes meanwhile. One tree after the other.
 */
import {
  closeSync,
  type Dir,
  lstatSync,
  opendirSync,
  openSync,
  readdirSync,
  rmdirSync,
  rmSync,
  unlinkSync,
} from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../../domain/model/errors.ts';
import { syncFileSystemNow } from '../../../platform/linux/jail.ts';
import { goBehind } from '../../../platform/linux/own-process.ts';
import { errorCodeOf } from '../../../platform/linux/syscalls.ts';
import { copyLooks } from './undescribed-directories.ts';
import { markOpaque } from './opaque.ts';
import type { FromTreeThread, ToTreeThread, TreeSize } from './trees.ts';

const BLOCK_BYTES = 512;

const measure = (root: string): TreeSize => {
  const seen = new Set<number>();
  let usedBytes = 0;
  const visit = (path: string): void => {
    try {
      const stats = lstatSync(path);
      if (seen.has(stats.ino)) return;
      seen.add(stats.ino);
      usedBytes += stats.blocks * BLOCK_BYTES;
      if (stats.isDirectory()) for (const name of readdirSync(path, 'latin1')) visit(join(path, name));
    } catch (error) {
      if (errorCodeOf(error) !== 'ENOENT') throw error;
    }
  };
  visit(root);
  return { usedBytes, inodesUsed: seen.size };
};

/** So many files are removed at a time where others are to come in between. */
const REMOVED_AT_ONCE = 500;

/** null once it is gone, else what was removed of it. */
const removeSome = (root: string): TreeSize | null => {
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
  if (stats === undefined) return null;
  if (stats.isDirectory()) {
    if (!removeDirectory(Buffer.from(root).toString('latin1'))) return { usedBytes: 0, inodesUsed: removed };
  } else unlinkSync(root);
  return null;
};

const sync = (path: string): void => {
  const fd = openSync(path, 'r');
  try {
    syncFileSystemNow(fd);
  } finally {
    closeSync(fd);
  }
};

const answer = (request: ToTreeThread): FromTreeThread => {
  try {
    switch (request.kind) {
      case 'measure':
        return { id: request.id, size: measure(request.path), error: null };
      case 'remove':
        rmSync(request.path, { recursive: true, force: true });
        break;
      case 'removeSome':
        return { id: request.id, size: removeSome(request.path), error: null };
      case 'copyLooks':
        copyLooks(request.looks);
        break;
      case 'markOpaque':
        markOpaque(request.directories);
        break;
      case 'sync':
        sync(request.path);
        break;
    }
    return { id: request.id, size: null, error: null };
  } catch (error) {
    return { id: request.id, size: null, error: messageOf(error) };
  }
};

goBehind();
parentPort?.on('message', (request: ToTreeThread) => parentPort?.postMessage(answer(request)));
