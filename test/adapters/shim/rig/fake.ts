/** A rig around the shim that misbehaves: installs it, changes its mood, and bounds what it may cost. */
import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { socketPathOf } from '../../../../src/adapters/shim/process/bootstrap.ts';
import { createTtrpcClient } from '../../../../src/platform/ttrpc/client.ts';
import type { ShimAddress } from '../../../../src/domain/model/tasks.ts';
import { openRig, processesNaming, type Rig } from './rig.ts';

const fakeRuntimeType = 'io.containerd.fake.v2';

const shortTimings = {
  connectMs: 400,
  callMs: 300,
  launchMs: 400,
  endMs: 300,
  detailsMs: 300,
  overdueMs: 200,
  reapMs: 300,
  shimExitMs: 300,
  retry: { firstMs: 5, lastMs: 20 },
};

/** Resolves with the path of its binary; `dir` is where it keeps its sockets and hears of its mood. */
const installFakeShim = async (dir: string): Promise<string> => {
  const path = join(dir, 'containerd-shim-fake-v2');
  const script = fileURLToPath(new URL('./fake-shim.ts', import.meta.url));
  const binary = await readFile(new URL('./fake-shim.sh', import.meta.url), 'utf8');
  const filledIn = binary.replaceAll('{dir}', dir).replace('{node}', process.execPath).replace('{script}', script);
  await writeFile(path, filledIn);
  await chmod(path, 0o755);
  return path;
};

export const setMood = async ({ shim }: { readonly shim: ShimAddress }, mood: string): Promise<void> => {
  const control = createTtrpcClient(connect(socketPathOf(shim.address)), 'the fake shim');
  await control.call('fake.Control', 'Mood', Buffer.from(mood), { timeoutMs: 1000 });
  control.close();
};

export interface FakeRig {
  readonly rig: Rig;
  /** Where the shim keeps its sockets, hears of its mood ("mood") and tells what it was asked to delete ("deleted"). */
  readonly dir: string;
  /** Fails when anything of the shim is left. */
  readonly close: () => Promise<void>;
}

export const openFakeRig = async (): Promise<FakeRig> => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-fake-'));
  const rig = await openRig(await installFakeShim(dir), { timings: shortTimings, runtimeType: fakeRuntimeType });
  return {
    rig,
    dir,
    close: async () => {
      await rig.close();
      assert.deepEqual(await processesNaming(dir), []);
      await rm(dir, { recursive: true });
    },
  };
};

/** More than any single effect may take with these timings, on a busy machine. */
const boundMs = 3000;

/** Settles as the work does; fails when it takes longer than an effect may. */
export const bounded = async <T>(work: Promise<T>): Promise<T> => {
  const startedMs = performance.now();
  try {
    return await work;
  } finally {
    const ms = performance.now() - startedMs;
    assert.ok(ms < boundMs, `it took ${ms} ms`);
  }
};
