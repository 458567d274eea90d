/** Finds programs as a shell would: by name in a search path, or by an absolute path. Runs nothing. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

/** A file that this process may execute. */
const isExecutable = async (path: string): Promise<boolean> => {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
};

/** The first of `directories` that has the program; null when none has it as an executable file. */
export const findIn = async (program: string, directories: readonly string[]): Promise<string | null> => {
  for (const directory of directories) {
    const path = join(directory, program);
    if (await isExecutable(path)) return path;
  }
  return null;
};

/** `program` is an absolute path, or a name to look up in `searchPath`, which is a PATH. */
export const findProgram = async (program: string, searchPath: string): Promise<string | null> => {
  if (isAbsolute(program)) return (await isExecutable(program)) ? program : null;
  return findIn(program, searchPath.split(delimiter).filter(isAbsolute));
};
