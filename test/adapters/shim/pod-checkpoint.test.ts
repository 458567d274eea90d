/** Freezing the containers of a pod together for its checkpoint: when one of them cannot be, and for how long. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CheckpointTools } from '../../../src/adapters/shim/checkpoint-command.ts';
import type { ShimContext } from '../../../src/adapters/shim/context.ts';
import { checkpointPod, whileFrozen } from '../../../src/adapters/shim/pod-checkpoint.ts';
import { defaultTimings } from '../../../src/adapters/shim/timings.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import { Status } from '../../../src/wire/types/task/task.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** What a step may take, and where it is for: a shim, or tar. */
type Step = readonly [string, number | null];

/** A shim and a spawner that take their time, and note how much they were given. */
const slowParts = (steps: Step[]): { readonly context: ShimContext; readonly tools: CheckpointTools } => {
  const taking = async (step: Step): Promise<void> => {
    steps.push(step);
    await sleep(30);
  };
  const client = {
    state: async () => ({ status: Status.RUNNING, bundle: '', pid: 1 }),
    checkpoint: ({ id }: { readonly id: string }, limitMs: number) => taking([`dump ${id}`, limitMs]),
  };
  const run: CheckpointTools['spawner']['run'] = async ({ args, timeoutMs }) => {
    await taking([args.includes('--sparse') ? 'changes' : 'archive', timeoutMs]);
    const none = new Uint8Array();
    return { exitCode: 0, signal: null, timedOut: false, stdout: none, stderr: none } as never;
  };
  const context = { shims: { clientOf: async () => client }, dumps: new Map(), timings: defaultTimings };
  return { context: context as unknown as ShimContext, tools: { spawner: { run }, searchPath: '' } };
};

describe('containers that are frozen together', { timeout: 20_000 }, () => {
  it('are thawed once all have been frozen, though one could not be', async () => {
    const said: string[] = [];
    const { promise: slowly, resolve: freezeSlow } = Promise.withResolvers<void>();
    const freeze = async (name: string): Promise<void> => {
      if (name === 'bad') throw new Error('ENODEV');
      await slowly;
      said.push(`${name} is frozen`);
    };
    const thaw = async (name: string): Promise<void> => void said.push(`${name} is thawed`);
    const work = async (): Promise<void> => void said.push('collected');
    const ended = assert.rejects(whileFrozen(['bad', 'slow'], { freeze, thaw }, work), /ENODEV/);
    await new Promise((resolve) => setImmediate(resolve));
    freezeSlow();
    await ended;
    assert.deepEqual(said, ['slow is frozen', 'bad is thawed', 'slow is thawed']);
  });

  it('are thawed when what was to be done while they were has failed', async () => {
    const said: string[] = [];
    const say = (what: string) => async (name: string) => void said.push(`${name} ${what}`);
    const work = (): Promise<void> => Promise.reject(new Error('no CRIU'));
    const steps = { freeze: say('frozen'), thaw: say('thawed') };
    await assert.rejects(whileFrozen(['one', 'other'], steps, work), /no CRIU/);
    assert.deepEqual(said, ['one frozen', 'other frozen', 'one thawed', 'other thawed']);
  });

  it('have together the time that one of them would have', async (t) => {
    const dir = await tempDir(t);
    for (const tool of ['criu', 'tar']) await writeFile(join(dir, tool), '', { mode: 0o755 });
    const containers = ['one', 'other'].map((containerId) => ({
      containerId,
      podSandboxId: 'pod',
      bundlePath: join(dir, containerId),
      workDir: join(dir, containerId, 'work'),
      location: join(dir, 'out', `${containerId}.tar`),
      timeoutMs: null,
      rootfs: [{ type: 'overlay', source: 'overlay', options: ['upperdir=/upper'] }],
      description: {},
    }));
    for (const { bundlePath } of containers) {
      await mkdir(bundlePath);
      await writeFile(join(bundlePath, 'config.json'), '{}');
    }
    const steps: Step[] = [];
    const { context, tools } = slowParts(steps);
    const outputPath = join(dir, 'out');
    const description = { runtimeHandler: '', config: {}, users: null };
    const effect = { kind: 'CheckpointPod', podSandboxId: 'pod', outputPath, containers, description };
    await checkpointPod(context, { ...tools, searchPath: dir }, effect as unknown as EffectOf<'CheckpointPod'>);

    assert.deepEqual(
      steps.map(([what]) => what),
      ['dump one', 'changes', 'dump other', 'changes', 'archive', 'archive'],
    );
    const limits = steps.map(([, limitMs]) => limitMs);
    // While they are frozen, and once more for what is written when they run again.
    for (const [index, limitMs] of limits.entries())
      if (index !== 0 && index !== 4) assert.ok(Number(limitMs) < Number(limits[index - 1]), limits.join(', '));
  });
});
