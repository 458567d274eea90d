/** A spawner small enough for tests: the daemon's own runs in another process, this one forks the test itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { RunRequest, RunResult, Spawner } from '../../../../src/adapters/spawner/types.ts';

/** Runs a program to its end as the spawner does: in a process group of its own, and nothing inherited. */
const runProgram = (request: RunRequest): Promise<RunResult> =>
  new Promise((resolve, reject) => {
    const { command, args, env, cwd, stdin, timeoutMs, outputBytesMax } = request;
    const child: ChildProcess = spawn(command, args, { env, cwd, detached: true, stdio: 'pipe' });
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    }, timeoutMs);
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(stdin ?? new Uint8Array(0));
    child.on('error', reject);
    child.on('close', (exitCode, signalName) => {
      clearTimeout(timer);
      const truncated = Buffer.concat(stdout).length > outputBytesMax;
      resolve({
        exitCode,
        signalName,
        timedOut,
        truncated,
        stdout: Buffer.concat(stdout).subarray(0, outputBytesMax),
        stderr: Buffer.concat(stderr).subarray(0, outputBytesMax),
      });
    });
  });

/** Counts what is run: tests look at `requests`. */
export const createTestSpawner = (): Pick<Spawner, 'run'> & { readonly requests: RunRequest[] } => {
  const requests: RunRequest[] = [];
  return {
    requests,
    run: (request) => {
      requests.push(request);
      return runProgram(request);
    },
  };
};
