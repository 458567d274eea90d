/**
 * Keeps a container's cgroup files open and reads them again and again: one system call per file and look, where
 * opening would make it three. An open file keeps no cgroup from being removed; reading it fails from then on.
 */
import { close as closeCallback, open as openCallback, read as readCallback } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { errorCodeOf } from '../../platform/error-code.ts';
import type { FileTexts } from './usage.ts';

/** The largest, memory.stat, has less than 2 KiB. */
export const FILE_BYTES_MAX = 16 * 1024;

const openFile = promisify(openCallback);
const closeFile = promisify(closeCallback);

/** Absolute directory and file name. */
export interface CgroupFile {
  readonly directory: string;
  readonly name: string;
}

export interface OpenFiles {
  /** Text of the files, read into the buffer one after the other; null when the cgroup is gone. */
  readonly read: (buffer: Buffer) => Promise<FileTexts | null>;
  /** Not while a read is under way. */
  readonly close: () => Promise<void>;
}

/** What this kernel, or this container's configuration, does not have. */
const isAbsent = (error: unknown): boolean => ['ENOENT', 'EOPNOTSUPP', 'EACCES'].includes(String(errorCodeOf(error)));
const isGone = (error: unknown): boolean => errorCodeOf(error) === 'ENODEV';

const readAll = (fd: number, buffer: Buffer): Promise<string> =>
  new Promise((resolve, reject) => {
    readCallback(fd, buffer, 0, buffer.length, 0, (error, length) => {
      if (error === null) resolve(buffer.toString('latin1', 0, length));
      else reject(error);
    });
  });

/** Opens what there is of the files; null when there is none of them: the cgroup is gone. */
export const openCgroupFiles = async (files: readonly CgroupFile[]): Promise<OpenFiles | null> => {
  const fds = new Map<string, number>();
  const close = async (): Promise<void> => {
    const open = [...fds.values()];
    fds.clear();
    await Promise.all(open.map((fd) => closeFile(fd)));
  };
  for (const { directory, name } of files) {
    try {
      fds.set(name, await openFile(join(directory, name), 'r'));
    } catch (error) {
      // One that is being removed can still have a name.
      if (isAbsent(error) || isGone(error)) continue;
      await close();
      throw error;
    }
  }
  if (fds.size === 0) return null;

  const read: OpenFiles['read'] = async (buffer) => {
    const texts: Record<string, string> = {};
    for (const [name, fd] of fds) {
      try {
        texts[name] = await readAll(fd, buffer);
      } catch (error) {
        if (isGone(error)) return null;
        if (!isAbsent(error)) throw error;
        // Pressure accounting that is switched off opens well and then can't be read.
        fds.delete(name);
        await closeFile(fd);
      }
    }
    return texts;
  };

  return { read, close };
};
