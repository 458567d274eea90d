/**
 * Opens a file beneath a directory without following a link on the way, whatever happens to the directories meanwhile:
 * each is opened by its name in the one before. Otherwise somebody who may write to a pod's log directory could lead
 * its log, and with it root's hand, elsewhere. (openat2(2) does this in one call, but the keeper loads nothing to make
 * it by.)
 */
import { closeSync, constants, openSync } from 'node:fs';
import { relative } from 'node:path';
import { errorCodeOf } from '../../platform/error-code.ts';
import { makeDirectoriesSync } from '../../platform/linux/make-directories.ts';

const DIRECTORY_MODE = 0o755;
const DIRECTORY_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY;

const within = (fd: number, name: string): string => `/proc/self/fd/${fd}/${name}`;

/** The descriptor's path is no help to anybody who reads the message. */
const explain = (error: unknown, directory: string, name: string): Error =>
  new Error(`${name} in ${directory} can't be opened: ${String(errorCodeOf(error) ?? error)}`, { cause: error });

const openOrMake = (path: string, flags: number): number => {
  try {
    return openSync(path, flags);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw error;
    makeDirectoriesSync(path, DIRECTORY_MODE);
    return openSync(path, flags);
  }
};

/**
 * Opens `path`, which is beneath `directory`, and makes the directories that are missing. Links above `directory`, and it
 * being one itself, are the node's own affair. Throws an Error that names the part that could not be opened.
 */
export const openBeneath = (directory: string, path: string, flags: number, mode: number): number => {
  const names = relative(directory, path).split('/');
  const file = names.pop() ?? '';
  let at = openOrMake(directory, DIRECTORY_FLAGS);
  let name = file;
  try {
    for (name of names) {
      const next = openOrMake(within(at, name), DIRECTORY_FLAGS | constants.O_NOFOLLOW);
      closeSync(at);
      at = next;
    }
    name = file;
    return openSync(within(at, file), flags | constants.O_NOFOLLOW, mode);
  } catch (error) {
    throw explain(error, directory, name);
  } finally {
    closeSync(at);
  }
};
