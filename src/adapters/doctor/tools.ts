/**
 * Finds programs and asks them for their version. Runs in the process of a command, never in the daemon: it forks.
 */
import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';

const TIMEOUT_MS = 5000;
const OUTPUT_BYTES_MAX = 64 * 1024;
const EXECUTABLE_BITS = 0o111;

const isExecutable = async (path: string): Promise<boolean> => {
  try {
    const facts = await stat(path);
    return facts.isFile() && (facts.mode & EXECUTABLE_BITS) !== 0;
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

/** `program` is an absolute path or a name to look up in `path`, which is a PATH. */
export const findProgram = async (program: string, path: string): Promise<string | null> => {
  if (isAbsolute(program)) return (await isExecutable(program)) ? program : null;
  return findIn(program, path.split(delimiter).filter(isAbsolute));
};

/** Stdout of a short run, or an Error that says why there is none. Bounded in time and size. */
export const outputOf = (
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  stdin = '',
): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { env: { ...env }, timeout: TIMEOUT_MS, maxBuffer: OUTPUT_BYTES_MAX, cwd: '/' };
    const child = execFile(program, [...args], { ...options, killSignal: 'SIGKILL' }, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error.killed === true ? new Error(`it did not answer within ${TIMEOUT_MS} ms`) : error);
    });
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(stdin);
  });
