/**
 * Stands in for the daemon where a test has to kill one: starts a spawner with the lock file it is given, has it run
 * a program with a child of its own and start a detached one, says on its output who they are, and waits to be killed.
 */
import { dirname, join } from 'node:path';
import { startSpawner } from '../../../src/platform/spawner/client.ts';

export interface StandInReport {
  readonly spawnerPid: number;
  /** The program that is run, and its child. */
  readonly runPids: readonly number[];
  readonly detached: { readonly pid: number; readonly startTicks: string };
}

const lockPath = process.argv[2] ?? '';
const env = { PATH: '/usr/bin:/bin' };
const spawner = await startSpawner({ lockPath, startTimeoutMs: 10_000 });
const detached = await spawner.startDetached({
  command: 'sleep',
  args: ['300'],
  env,
  cwd: '/',
  outputPath: join(dirname(lockPath), 'detached.log'),
});
const report = (chunk: Uint8Array): void => {
  const runPids = Buffer.from(chunk).toString().trim().split(' ').map(Number);
  const said: StandInReport = { spawnerPid: spawner.pid, runPids, detached };
  process.stdout.write(`${JSON.stringify(said)}\n`);
};
await spawner.run({
  command: 'sh',
  args: ['-c', 'sleep 300 & echo $$ $!; wait'],
  env,
  cwd: '/',
  timeoutMs: 300_000,
  outputBytesMax: 1_000,
  onStdout: report,
});
