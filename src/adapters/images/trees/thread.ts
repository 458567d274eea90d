/**
 * The thread that removes, measures and completes directory trees too large for the daemon's own loop. Follows no link,
 * and goes on past what vanishes meanwhile. One tree after the other.
 */
import { closeSync, lstatSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { messageOf } from '../../../domain/model/errors.ts';
import { syncFileSystemNow } from '../../../platform/linux/jail.ts';
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

parentPort?.on('message', (request: ToTreeThread) => parentPort?.postMessage(answer(request)));
