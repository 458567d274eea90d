/** Parts of a bundle as files of one directory, and that directory as a tar.gz, which tar writes in a process of its own. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { messageOf } from '../../domain/model/errors.ts';
import { failure } from '../command.ts';

/** Only its owner may read what is in it. */
const FILE_MODE = 0o600;

const exitOf = async (tar: ReturnType<typeof spawn>): Promise<number | null> => {
  const [code] = (await once(tar, 'exit')) as [number | null];
  return code;
};

const cannotBeMade = (path: string, error: unknown): Error =>
  failure(`${path} cannot be made: ${messageOf(error)}. Name another with --output.`, error);

/** A new file that is its owner's alone, and never another one's. */
const openNew = (path: string): Promise<FileHandle> =>
  open(path, 'wx', FILE_MODE).catch((error: unknown) => {
    throw cannotBeMade(path, error);
  });

/**
 * Throws what writeArchive would throw for this path, before anything is made that goes into it. Without waiting in between: nobody
 * takes the file away yet when the command is interrupted.
 */
export const checkPlace = (path: string): void => {
  try {
    closeSync(openSync(path, 'wx', FILE_MODE));
    rmSync(path);
  } catch (error) {
    throw cannotBeMade(path, error);
  }
};

/**
 * Writes the files `names` of `dir` to the new file `path`, below a directory `inside`. Throws when there is something at
 * that path, and when there is no tar.
 */
export const writeArchive = async (dir: string, inside: string, path: string): Promise<void> => {
  // Not by tar, which would write over one that is there.
  const file = await openNew(path);
  try {
    const tar = spawn('tar', ['-czf', '-', '-C', dir, inside], { stdio: ['ignore', file.fd, 'pipe'] });
    const words = tar.stderr === null ? Promise.resolve('') : text(tar.stderr);
    const code = await exitOf(tar).catch((error: unknown) => {
      throw failure(`tar cannot be run: ${(error as Error).message}. Install it.`, error);
    });
    if (code !== 0) throw failure(`tar failed to write ${path}: ${(await words).trim()}`);
    await file.sync();
  } catch (thrown) {
    // What is not whole must not be taken for a bundle, nor stand in the way of the next one.
    await rm(path, { force: true });
    throw thrown;
  } finally {
    await file.close();
  }
};
