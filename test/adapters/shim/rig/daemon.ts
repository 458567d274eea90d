/**
 * A daemon as far as shims can tell, to be killed: `daemon.ts <state directory> <effects as JSON>` performs the effects
 * one after the other, the last one without waiting for its end, prints the results as JSON and stays.
 */
import { join } from 'node:path';
import { pino } from 'pino';
import { createShimAdapter } from '../../../../src/adapters/shim/adapter.ts';
import { startSpawner } from '../../../../src/platform/spawner/client.ts';
import { readCgroupFacts } from '../../../../src/platform/linux/cgroups.ts';
import type { EffectOf } from '../../../../src/domain/model/effects.ts';
import { pooledFiles } from '../../../../src/platform/linux/files.ts';
import { createTestLogKeeper } from './log-keeper.ts';
import { launch } from './rig.ts';

export interface DaemonTask {
  readonly startShim: EffectOf<'StartShim'>;
  readonly createTask: EffectOf<'CreateTask'>;
  readonly runExec: EffectOf<'RunExec'>;
}

const [, , stateDir = '', json = ''] = process.argv;
const { startShim, createTask, runExec } = JSON.parse(json) as DaemonTask;
const { effects } = await createShimAdapter({
  spawner: await startSpawner({ lockPath: join(stateDir, 'spawner.lock'), startTimeoutMs: 20_000 }),
  logKeeper: createTestLogKeeper(),
  observe: () => Promise.resolve(),
  filledArg: (arg) => (typeof arg === 'string' ? arg : `filled ${arg.token}`),
  processClientOf: () => {
    throw new Error('There is no session.');
  },
  execOutput: { bytesMax: 1024 * 1024, totalBytesMax: 1024 * 1024 },
  keptShims: { shimsMax: 0, forMs: 0 },
  shimsInUse: new Set(),
  stateDir,
  files: pooledFiles,
  cgroup: await readCgroupFacts(),
  log: pino({ level: 'silent' }),
});
const context = { signal: new AbortController().signal, attach: () => undefined };
const { shim } = await effects.StartShim(startShim, context);
const { task } = await launch(effects, createTask);
void effects.RunExec(runExec, context);
process.stdout.write(`${JSON.stringify({ shim, task })}\n`);
