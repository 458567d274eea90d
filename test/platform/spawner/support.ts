/** What tests of the spawner run, and how they learn what became of it. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { holdProcess, readProcessStat } from '../../../src/platform/linux/processes.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { RunRequest, Spawner } from '../../../src/platform/spawner/types.ts';
import { onCleanup } from '../../support/cleanup.ts';

export const KiB = 1024;

export const request = (command: string, args: readonly string[] = [], more: Partial<RunRequest> = {}): RunRequest => ({
  command,
  args,
  env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
  cwd: '/',
  timeoutMs: 20_000,
  outputBytesMax: 64 * KiB,
  ...more,
});

export const shell = (script: string, more?: Partial<RunRequest>): RunRequest => request('sh', ['-c', script], more);

export const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

export const spawnerOf = async (t: TestContext, dir: string): Promise<Spawner> => {
  const spawner = await startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(t, () => spawner.close());
  return spawner;
};

/** Waits for the end of a process that a pid was seen of; already gone is fine. */
export const endOf = async (pid: number): Promise<void> => {
  const process = await readProcessStat(pid);
  const held = process && (await holdProcess(process));
  if (!held) return;
  await Promise.race([held.ended, sleep(5_000).then(() => assert.fail(`process ${pid} is still there`))]);
  held.release();
};
