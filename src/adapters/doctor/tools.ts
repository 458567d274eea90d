/**
 * Asks programs for their version. Runs in the process of a command, never in the daemon: it forks.
 */
import { execFile } from 'node:child_process';

const TIMEOUT_MS = 5000;
const OUTPUT_BYTES_MAX = 64 * 1024;

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
