/**
 * Makes a directory with all that are missing above it, as mkdir -p does, where others name the path. Node's own way (mkdir with
 * `recursive`) tries for ever where a directory that is there takes none: in /proc, and in one that is being removed. Imports
 * nothing of ours but what loads nothing: the log keeper has it, too.
 */
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { errorCodeOf } from '../error-code.ts';

const isThere = (error: unknown): boolean => errorCodeOf(error) === 'EEXIST';
const lacksOneAbove = (error: unknown, path: string): boolean =>
  errorCodeOf(error) === 'ENOENT' && dirname(path) !== path;

/** The path, if it was made; undefined: it is there. */
const makeOne = async (path: string, mode: number): Promise<string | undefined> => {
  try {
    await mkdir(path, { mode });
    return path;
  } catch (error) {
    if (isThere(error) && (await stat(path)).isDirectory()) return undefined;
    throw error;
  }
};

const makeOneSync = (path: string, mode: number): string | undefined => {
  try {
    mkdirSync(path, { mode });
    return path;
  } catch (error) {
    if (isThere(error) && statSync(path).isDirectory()) return undefined;
    throw error;
  }
};

/** Resolves with the outermost directory that was made; undefined: all are there. Rejects as mkdir(2) fails. */
export const makeDirectories = async (path: string, mode: number): Promise<string | undefined> => {
  try {
    return await makeOne(path, mode);
  } catch (error) {
    if (!lacksOneAbove(error, path)) throw error;
    const outermost = await makeDirectories(dirname(path), mode);
    const made = await makeOne(path, mode);
    return outermost ?? made;
  }
};

export const makeDirectoriesSync = (path: string, mode: number): string | undefined => {
  try {
    return makeOneSync(path, mode);
  } catch (error) {
    if (!lacksOneAbove(error, path)) throw error;
    const outermost = makeDirectoriesSync(dirname(path), mode);
    const made = makeOneSync(path, mode);
    return outermost ?? made;
  }
};
