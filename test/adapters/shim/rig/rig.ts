/**
 * What the shim tests share: an adapter in a state directory of its own, with real shims and real containers behind it,
 * that is cleaned up whatever happens, and that says so when something was left behind.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pino } from 'pino';
import { detachMount } from '../../../../src/platform/linux/syscalls.ts';
import { createShimAdapter, type ShimAdapter, type ShimEffects } from '../../../../src/adapters/shim/adapter.ts';
import { readCgroupFacts } from '../../../../src/platform/linux/cgroups.ts';
import type { KeptShimsSettings } from '../../../../src/adapters/shim/process/kept-shims.ts';
import type { ShimTimings } from '../../../../src/adapters/shim/timings.ts';
import type { ProcessClient } from '../../../../src/adapters/streaming/types.ts';
import type { LogKeeper } from '../../../../src/adapters/log-keeper/types.ts';
import type { Spawner } from '../../../../src/platform/spawner/types.ts';
import type { EffectOf, EffectResults } from '../../../../src/domain/model/effects.ts';
import type { ShimOrigin, ShimAddress } from '../../../../src/domain/model/tasks.ts';
import type { RuntimeHandler } from '../../../../src/domain/model/runtime-handler.ts';
import type { Observation } from '../../../../src/domain/model/observation.ts';
import type { EffectAttachment, EffectContext, Observe } from '../../../../src/engine/ports.ts';
import { pooledFiles } from '../../../../src/platform/linux/files.ts';
import { cgroupsBelow, mountsBelow, processes, processesInCgroups, removeCgroups } from '../../../support/leftovers.ts';
import { type BundleOptions, makeBundle, makeRootfs } from './bundles.ts';
import { createTestLogKeeper, type TestLogKeeper } from './log-keeper.ts';
import { type RecordingSpawner, startRecordingSpawner } from './spawner.ts';

export interface Rig {
  readonly adapter: ShimAdapter;
  readonly observations: Observation[];
  /** Resolves with the first observation that fits, those of before included. */
  readonly observed: <K extends Observation['kind']>(
    kind: K,
    fits?: (observation: Extract<Observation, { kind: K }>) => boolean,
  ) => Promise<Extract<Observation, { kind: K }>>;
  /** Runs at each observation, before it counts as durable. */
  observe: Observe;
  readonly logKeeper: TestLogKeeper;
  readonly spawner: RecordingSpawner;
  readonly stateDir: string;
  readonly handler: RuntimeHandler;
  /** What the journal would say of shims in places of their own; startPod adds what it starts. */
  readonly shimsInUse: Set<string>;
  readonly newId: () => string;
  readonly bundle: (id: string, podSandboxId: string, options: BundleOptions) => Promise<string>;
  /** A pod whose shim is not started; whatever shim it has is stopped when the rig is closed. */
  readonly newPod: () => Promise<{ readonly podSandboxId: string; readonly bundlePath: string }>;
  /** With a shim of its own, or with the one of that id, which pods share. */
  readonly startPod: (sharedShimId?: string) => Promise<{
    readonly podSandboxId: string;
    readonly bundlePath: string;
    readonly shim: ShimAddress;
    readonly shared?: ShimOrigin;
  }>;
  /** A CreateTask effect for a new container of that pod. */
  readonly container: (
    podSandboxId: string,
    options: BundleOptions,
    more?: Partial<EffectOf<'CreateTask'>>,
  ) => Promise<EffectOf<'CreateTask'>>;
  /** Performs it, and StartTask for the same, as the engine does. */
  readonly launch: (effect: EffectOf<'CreateTask'>) => Promise<EffectResults['StartTask']>;
  readonly exec: (
    task: EffectOf<'CreateTask'>,
    args: readonly string[],
    timeoutMs?: number | null,
  ) => Promise<{
    readonly exitStatus: number;
    readonly timedOut: boolean;
    readonly stdout: string;
    readonly stderr: string;
    readonly ms: number;
  }>;
  /** Closes the adapter as a dying daemon does, and starts another one in the same state directory. */
  readonly restart: (whileDown?: () => Promise<void>) => Promise<void>;
  readonly close: () => Promise<void>;
}

export const openContext = (attach: (attachment: EffectAttachment) => void = () => undefined): EffectContext => ({
  signal: new AbortController().signal,
  attach,
});

/** Living processes whose command line holds `text`, as "pid command". */
export const processesNaming = async (text: string): Promise<string[]> =>
  (await processes())
    .filter(({ pid, commandLine }) => pid !== process.pid && commandLine.includes(text))
    .map(({ pid, commandLine }) => `${pid} ${commandLine}`);

type KeeperForShims = Pick<LogKeeper, 'open' | 'reopen' | 'close' | 'attach'>;

const noSession = (): never => {
  throw new Error('There is no such session.');
};

const execOutput = { bytesMax: 16 * 1024 * 1024, totalBytesMax: 64 * 1024 * 1024 };

export interface RigOptions {
  /** What the effects of sessions find their clients in. */
  readonly sessions?: ReadonlyMap<string, ProcessClient>;
  readonly timings?: Partial<ShimTimings>;
  readonly runtimeType?: string;
  /** Where shims and OCI runtimes are looked up; the tests' own PATH, unless told. */
  readonly searchPath?: string;
  /** None, unless told. */
  readonly keptShims?: KeptShimsSettings;
  /** Called for each adapter, as each daemon connects anew; without it one in memory serves them all. */
  readonly startLogKeeper?: (stateDir: string, spawner: Spawner) => Promise<KeeperForShims>;
  readonly endLogKeeper?: () => Promise<void>;
  /** Of an adapter that is opened now; without it shims are asked at once. */
  readonly whenServing?: () => Promise<void>;
}

export const openRig = async (shimPath: string, options: RigOptions = {}): Promise<Rig> => {
  const { timings = {}, runtimeType = 'io.containerd.runc.v2', startLogKeeper, endLogKeeper } = options;
  const base = await mkdtemp(join(tmpdir(), 'scribe-shim-'));
  const stateDir = join(base, 'state');
  const rootfs = join(base, 'rootfs');
  const cgroupParent = `/${basename(base)}`;
  await mkdir(stateDir, { mode: 0o700 });
  await makeRootfs(rootfs);
  const spawner = await startRecordingSpawner(join(base, 'spawner.lock'));
  const logKeeper = createTestLogKeeper();
  const observations: Observation[] = [];
  const waiting = new Set<() => void>();
  const pods: { podSandboxId: string; bundlePath: string; shared?: ShimOrigin }[] = [];
  const containers: EffectOf<'CreateTask'>[] = [];
  const handler: RuntimeHandler = {
    name: 'test',
    runtimeType,
    shimPath,
    binaryName: 'runc',
    systemdCgroup: false,
  };
  const level = process.env['SCRIBE_TEST_LOG'] ?? 'silent';
  const open = async (): Promise<ShimAdapter> =>
    createShimAdapter({
      spawner,
      logKeeper: (await startLogKeeper?.(stateDir, spawner)) ?? logKeeper,
      execOutput,
      filledArg: (arg) => (typeof arg === 'string' ? arg : `filled ${arg.token}`),
      processClientOf: (sessionId) => options.sessions?.get(sessionId) ?? noSession(),
      stateDir,
      files: pooledFiles,
      cgroup: await readCgroupFacts(),
      ...(options.whenServing === undefined ? {} : { whenServing: options.whenServing() }),
      timings,
      ...(options.searchPath === undefined ? {} : { searchPath: options.searchPath }),
      keptShims: options.keptShims ?? { shimsMax: 0, forMs: 0 },
      shimsInUse: rig.shimsInUse,
      log: pino({ level }),
      observe: async (observation) => {
        await rig.observe(observation);
        observations.push(observation);
        for (const wake of waiting) wake();
      },
    });
  let adapter: ShimAdapter;

  const rig: Rig = {
    get adapter() {
      return adapter;
    },
    observations,
    observe: () => Promise.resolve(),
    observed: async (kind, fits = () => true) => {
      type Wanted = Extract<Observation, { kind: typeof kind }>;
      const find = (): Wanted | undefined =>
        observations.find((one): one is Wanted => one.kind === kind && fits(one as Wanted));
      for (;;) {
        const found = find();
        if (found !== undefined) return found;
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        await promise;
        waiting.delete(resolve);
      }
    },
    logKeeper,
    spawner,
    stateDir,
    handler,
    shimsInUse: new Set(),
    newId: () => randomBytes(32).toString('hex'),
    bundle: (id, podSandboxId, options) =>
      makeBundle({ dir: join(stateDir, 'bundles'), id, podSandboxId, cgroupParent }, options),
    newPod: async () => {
      const podSandboxId = rig.newId();
      const bundlePath = await rig.bundle(podSandboxId, podSandboxId, { args: ['sleep', '1000'] });
      pods.push({ podSandboxId, bundlePath });
      return { podSandboxId, bundlePath };
    },
    startPod: async (sharedShimId) => {
      const shared =
        sharedShimId === undefined
          ? {}
          : { shared: { id: sharedShimId, dir: join(stateDir, 'bundles', sharedShimId) } };
      const pod = { ...(await rig.newPod()), ...shared };
      pods.push(pod);
      const { shim } = await adapter.effects.StartShim({ kind: 'StartShim', ...pod, handler }, openContext());
      if (shim.origin !== undefined) rig.shimsInUse.add(shim.origin.id);
      return { ...pod, shim };
    },
    container: async (podSandboxId, options, more = {}) => {
      const containerId = more.containerId ?? rig.newId();
      const effect: EffectOf<'CreateTask'> = {
        kind: 'CreateTask',
        podSandboxId,
        containerId,
        handler,
        bundlePath: await rig.bundle(containerId, podSandboxId, options),
        rootfs: [{ type: 'bind', source: rootfs, options: ['rbind', 'ro'] }],
        terminal: options.terminal ?? false,
        stdin: false,
        stdinOnce: false,
        log: { path: null },
        ...more,
      };
      containers.push(effect);
      return effect;
    },
    launch: (effect) => launch(adapter.effects, effect),
    exec: async ({ podSandboxId, containerId, bundlePath }, args, timeoutMs = null) => {
      const attachments: EffectAttachment[] = [];
      const startedMs = performance.now();
      const result = await adapter.effects.RunExec(
        { kind: 'RunExec', podSandboxId, containerId, execId: rig.newId(), bundlePath, args, timeoutMs },
        openContext((attachment) => attachments.push(attachment)),
      );
      const ms = performance.now() - startedMs;
      assert.equal(attachments.length, 1);
      const [stdout, stderr] = [attachments[0]?.stdout, attachments[0]?.stderr].map((bytes) =>
        Buffer.from(bytes ?? []).toString(),
      );
      return {
        exitStatus: result.exitStatus,
        timedOut: result.timedOut,
        stdout: stdout ?? '',
        stderr: stderr ?? '',
        ms,
      };
    },
    restart: async (whileDown = () => Promise.resolve()) => {
      await adapter.close();
      await whileDown();
      adapter = await open();
    },
    close: async () => {
      rig.observe = () => Promise.resolve();
      for (const { podSandboxId, containerId, bundlePath } of containers) {
        await adapter.effects
          .DeleteTask({ kind: 'DeleteTask', podSandboxId, containerId, handler, bundlePath }, openContext())
          .catch(() => undefined);
      }
      for (const { shared, ...pod } of pods) {
        const ended = shared === undefined ? {} : { shared: { ...shared, isInUse: false } };
        await adapter.effects
          .StopShim({ kind: 'StopShim', ...pod, ...ended, handler, shim: null }, openContext())
          .catch(() => undefined);
      }
      await adapter.close();
      await endLogKeeper?.();
      await spawner.close();
      const left = {
        mounts: (await mountsBelow([base])).map(({ path }) => path),
        processes: (await processesNaming(base)).concat((await processesInCgroups(cgroupParent)).map(String)),
        runtimeState: await readdir(join(stateDir, 'runtime/k8s.io')).catch(() => []),
        fifos: [...(await readdir(join(stateDir, 'io'))), ...(await readdir(join(stateDir, 'exec')))],
        temporary: await readdir(join(stateDir, 'tmp')),
        cgroups: await cgroupsBelow(cgroupParent),
      };
      for (const path of left.mounts.toReversed()) detachMount(path);
      for (const pid of await processesInCgroups(cgroupParent)) process.kill(pid, 'SIGKILL');
      await removeCgroups(cgroupParent);
      await rm(base, { recursive: true, force: true });
      for (const [what, found] of Object.entries(left)) assert.deepEqual(found, [], `${what} left behind`);
    },
  };
  adapter = await open();
  return rig;
};

export const startOf = ({
  podSandboxId,
  containerId,
  handler,
  bundlePath,
}: EffectOf<'CreateTask'>): EffectOf<'StartTask'> => ({
  kind: 'StartTask',
  podSandboxId,
  containerId,
  handler,
  bundlePath,
});

/** One after the other. */
export const launch = async (
  effects: Pick<ShimEffects, 'CreateTask' | 'StartTask'>,
  effect: EffectOf<'CreateTask'>,
): Promise<EffectResults['StartTask']> => {
  await effects.CreateTask(effect, openContext());
  return effects.StartTask(startOf(effect), openContext());
};

export const deleteOf = ({
  podSandboxId,
  containerId,
  handler,
  bundlePath,
}: EffectOf<'CreateTask'>): EffectOf<'DeleteTask'> => ({
  kind: 'DeleteTask',
  podSandboxId,
  containerId,
  handler,
  bundlePath,
});

export const killOf = ({ podSandboxId, containerId }: EffectOf<'CreateTask'>, signal = 9): EffectOf<'KillTask'> => ({
  kind: 'KillTask',
  podSandboxId,
  containerId,
  signal,
  all: signal === 9,
});
