/**
 * What is measured, in which order: the phases. Each phase measures each runtime once per round, ours and the peer in
 * turn, so that what else the machine does meets both. Knows no goal and prints no result.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { StagedBoot } from '../../test/support/staged-boot.ts';
import { idlePercent, memoryAtRest, REST_MS } from './at-rest.ts';
import { measureAtWork, workFigures } from './at-work.ts';
import { type ClientCommand, type ClientFlags, type ClientResult, medianOf, runClient, type Target } from './client.ts';
import { measureDensity } from './density.ts';
import { measureFullPods } from './full-pods.ts';
import { measureImages } from './images.ts';
import { measureLogs } from './logs.ts';
import { memoryOf } from './memory.ts';
import type { Figures, MetricKey } from './metrics.ts';
import { loadedPhases, type PhaseName, phaseNames } from './phases.ts';
import { measurePulls, type PullImages } from './pulls.ts';
import { takeAway } from './reboot.ts';
import type { Runtime, RuntimeName } from './runtimes.ts';
import { EXITS, exitFigures, loopFigures } from './under-load.ts';

export interface Plan {
  readonly phases: readonly PhaseName[];
  readonly rounds: number;
  /** Pods of a serial round, and commands of an exec round; a parallel round has twice as many. */
  readonly pods: number;
  /** Pods that are there while memory, rates and restarts are measured, and before a reboot. */
  readonly loaded: number;
  /** Duration of each measurement of a rate. */
  readonly seconds: number;
  /** Pods that run and are removed in a round of lives, and of loop. */
  readonly lives: number;
  /** Pods that are there in a round of density, on one runtime at a time. */
  readonly dense: number;
}

export interface Bench {
  readonly runtimes: readonly Runtime[];
  readonly image: string;
  /** null: pulls are not measured. */
  readonly pullImages: PullImages | null;
  /** On one base, which is the first of them; null: they are not measured. */
  readonly manyImages: readonly string[] | null;
  /** null: reboots are not measured. */
  readonly staged: StagedBoot | null;
  /** A directory for files of this run. */
  readonly dir: string;
  /** Command line of the benchmark's client. */
  readonly client: readonly string[];
  readonly signal: AbortSignal;
  /** Tells whoever waits what is going on. */
  readonly progress: (text: string) => void;
}

/** One measurement of one runtime, as it goes into the file of raw results. */
export interface Measurement {
  readonly phase: PhaseName;
  readonly round: number;
  readonly runtime: RuntimeName;
  readonly figures: Figures;
  readonly errors: readonly string[];
  /** What the figures were made of. */
  readonly raw: object;
}

type Measured = Pick<Measurement, 'figures' | 'errors' | 'raw'>;

const parallelPods = 8;
const parallelCallers = 4;
const fillers = 4;
/** Long enough for a daemon to have done what it puts off until it has nothing else to do. */
const settleMs = 3_000;
const pauseMs = 500;
const mebibyte = 1024 * 1024;

const targetOf = ({ socket, dirs }: Runtime, { image, dir }: Bench): Target => ({
  socket,
  image,
  cgroupParent: dirs.cgroupParent,
  logDir: join(dir, 'logs'),
});

export const callClient = (
  runtime: Runtime,
  bench: Bench,
  command: ClientCommand,
  flags: ClientFlags,
  onReady?: () => void,
): Promise<ClientResult> => {
  const { client, signal } = bench;
  return runClient(targetOf(runtime, bench), command, flags, {
    client,
    signal,
    ...(onReady === undefined ? {} : { onReady }),
  });
};

/** Figures under other names: the median of the samples of each call. */
const medians = (result: ClientResult, names: Readonly<Partial<Record<MetricKey, string>>>): Figures =>
  Object.fromEntries(Object.entries(names).map(([key, call]) => [key, medianOf(result, call)]));

const calls = {
  runPodSandbox: 'RunPodSandbox',
  createContainer: 'CreateContainer',
  startContainer: 'StartContainer',
  podReady: 'PodReady',
  stopContainer: 'StopContainer',
  removeContainer: 'RemoveContainer',
  stopAndRemove: 'StopAndRemove',
  stopPodSandbox: 'StopPodSandbox',
  removePodSandbox: 'RemovePodSandbox',
} as const;

/** By then scribe has put away what sessions and pulls are done with. */
const QUIET_SECONDS = 30;

const rareCalls = {
  rarePodReady: calls.podReady,
  rareSession: 'ExecSession',
  rareStopAndRemove: calls.stopAndRemove,
  rareStopPodSandbox: calls.stopPodSandbox,
} as const;

const podsPerSecond = ({ perSecond }: ClientResult): number => perSecond?.['pods'] ?? Number.NaN;

const measureRates = (result: ClientResult): Figures => {
  const rateOf = (call: string): number => result.perSecond?.[call] ?? Number.NaN;
  return {
    version: rateOf('Version'),
    listContainers: rateOf('ListContainers'),
    listPodSandbox: rateOf('ListPodSandbox'),
    containerStatus: rateOf('ContainerStatus'),
    listContainerStats: rateOf('ListContainerStats'),
  };
};

const measureMemory = async (runtime: Runtime): Promise<Measured> => {
  const raw = await memoryOf(runtime.pid(), runtime.dirs);
  const pssBytes = raw.processes.reduce((sum, process) => sum + process.pssBytes, 0);
  return { figures: { memory: raw.bytes / mebibyte, pss: pssBytes / mebibyte }, errors: [], raw };
};

const measureIdle = async (runtime: Runtime, { signal }: Bench): Promise<Measured> => ({
  figures: { idle: await idlePercent(runtime.pid(), runtime.dirs, signal) },
  errors: [],
  raw: {},
});

const measureKubelet = async (runtime: Runtime, bench: Bench): Promise<Measured> => {
  const raw = await measureAtWork(runtime.pid(), runtime.dirs, (probes, askedSeconds) =>
    callClient(runtime, bench, 'kubelet', { count: probes, seconds: askedSeconds }),
  );
  return { figures: workFigures(raw), errors: raw.errors, raw };
};

/** Pods come and go beside those that stay; what they leave behind is what there is more after the round. */
const measureLives = async (runtime: Runtime, bench: Bench, { lives }: Plan): Promise<Measured> => {
  const before = await memoryAtRest(runtime.pid(), runtime.dirs, bench.signal);
  const { errors = [] } = await callClient(runtime, bench, 'lifecycle', { count: lives, parallel: parallelPods });
  const raw = await memoryAtRest(runtime.pid(), runtime.dirs, bench.signal);
  const figures = { memoryAfterLives: raw.bytes / mebibyte, memoryGrowth: raw.bytes / before.bytes };
  return { figures, errors, raw };
};

/** Asked before, so that what is told after is of the lives alone. Nothing of the kind is there in containerd. */
const measureLoop = async (runtime: Runtime, bench: Bench, { lives }: Plan): Promise<Measured> => {
  if (runtime.readMetrics === null) return { figures: {}, errors: [], raw: {} };
  await runtime.readMetrics();
  const raw = await callClient(runtime, bench, 'lifecycle', { count: lives, parallel: parallelPods });
  return { figures: loopFigures(await runtime.readMetrics()), errors: raw.errors ?? [], raw };
};

interface Launched {
  readonly askedAtMs: number;
  /** From then until all of them were listed. */
  readonly listedAfterMs: number;
  readonly listed: ClientResult;
}

/** Starts a daemon that was killed while the client asks for all of its containers. */
const launchAwaited = async (runtime: Runtime, bench: Bench, ids: readonly string[]): Promise<Launched> => {
  const idsFile = join(bench.dir, `${runtime.name}.ids.json`);
  await writeFile(idsFile, JSON.stringify(ids));
  const { promise: clientIsReady, resolve: onReady } = Promise.withResolvers<undefined>();
  const awaiting = callClient(runtime, bench, 'await', { ids: idsFile }, () => onReady(undefined));
  await Promise.race([clientIsReady, awaiting]);
  const askedAtMs = await runtime.launch();
  const listed = await awaiting;
  return { askedAtMs, listedAfterMs: (listed.answeredAtMs ?? Number.NaN) - askedAtMs, listed };
};

/** Kills the daemon and starts it again; the pods live on under their shims. */
const measureRestart = async (runtime: Runtime, bench: Bench, ids: readonly string[]): Promise<Measured> => {
  await runtime.kill();
  const { askedAtMs, listedAfterMs, listed } = await launchAwaited(runtime, bench, ids);
  await sleep(settleMs, undefined, { signal: bench.signal });
  const { running = 0 } = listed;
  const errors = running === ids.length ? [] : [`after the restart ${running} of ${ids.length} containers run`];
  return { figures: { restart: listedAfterMs }, errors, raw: { askedAtMs, ...listed } };
};

/** The pods are gone with the node, and a kubelet makes them anew. */
const measureReboot = async (runtime: Runtime, bench: Bench, { loaded }: Plan): Promise<Measured> => {
  if (bench.staged === null) throw new Error('no other boot id can be staged');
  const filled = await callClient(runtime, bench, 'fill', { count: loaded, parallel: parallelPods });
  failOn(`running ${loaded} pods`, runtime, filled.errors);
  await runtime.kill();
  await takeAway(runtime, bench.staged);
  const { askedAtMs, listedAfterMs, listed } = await launchAwaited(runtime, bench, filled.containerIds ?? []);
  const again = await callClient(runtime, bench, 'again', { parallel: parallelPods });
  const figures = { rebootList: listedAfterMs, rebootRunning: Date.now() - askedAtMs };
  const { running = 0 } = listed;
  const errors = running === 0 ? [] : [`after the reboot ${running} containers run`];
  return { figures, errors: [...errors, ...(again.errors ?? [])], raw: { askedAtMs, listed, again } };
};

/** Two seconds of a session, about. */
const STREAMED_BYTES = 256 * mebibyte;

const streamFigures = (result: ClientResult): Figures => {
  const { execOut = Number.NaN, execIn = Number.NaN, forward = Number.NaN } = result.perSecond ?? {};
  return {
    ...medians(result, { execSession: 'ExecSession', forwardedGet: 'ForwardedGet' }),
    ...{ execOut, execIn, forward },
  };
};

const measure = async (
  phase: PhaseName,
  runtime: Runtime,
  bench: Bench,
  plan: Plan,
  loadedIds: readonly string[],
): Promise<Measured> => {
  const { pods, seconds } = plan;
  const withClient = async (
    command: ClientCommand,
    flags: ClientFlags,
    figuresOf: (result: ClientResult) => Figures,
  ): Promise<Measured> => {
    const result = await callClient(runtime, bench, command, flags);
    return { figures: figuresOf(result), errors: result.errors ?? [], raw: result };
  };
  switch (phase) {
    case 'serial':
      return withClient('lifecycle', { count: pods }, (result) => ({
        ...medians(result, calls),
        podsSerial: podsPerSecond(result),
      }));
    case 'parallel':
      return withClient('lifecycle', { count: 2 * pods, parallel: parallelPods }, (result) => ({
        ...medians(result, { podReadyParallel: calls.podReady }),
        podsParallel: podsPerSecond(result),
      }));
    case 'full':
      return measureFullPods(runtime.dirs.root, pods, parallelPods, (flags) =>
        callClient(runtime, bench, 'full', flags),
      );
    case 'rare':
      return withClient('rare', { count: 1, seconds: QUIET_SECONDS }, (result) => medians(result, rareCalls));
    case 'exec':
      return withClient('exec', { count: pods }, (result) => medians(result, { execSync: 'ExecSync' }));
    case 'streams':
      return withClient('streams', { count: pods, bytes: STREAMED_BYTES }, streamFigures);
    case 'logs':
      return measureLogs(runtime.pid(), runtime.dirs, (flags) => callClient(runtime, bench, 'logs', flags));
    case 'memory':
      return measureMemory(runtime);
    case 'rates':
      return withClient('rates', { parallel: parallelCallers, seconds }, measureRates);
    case 'restart':
      return measureRestart(runtime, bench, loadedIds);
    case 'idle':
      return measureIdle(runtime, bench);
    case 'kubelet':
      return measureKubelet(runtime, bench);
    case 'loop':
      return measureLoop(runtime, bench, plan);
    case 'lives':
      return measureLives(runtime, bench, plan);
    case 'exits':
      return withClient('exits', { count: EXITS, parallel: parallelPods }, exitFigures);
    case 'density':
      return withoutOthers(runtime, bench, () => measureDense(runtime, bench, plan));
    case 'reboot':
      return withoutOthers(runtime, bench, () => measureReboot(runtime, bench, plan));
    case 'images':
      if (bench.manyImages === null) throw new Error('there are no images to be many of');
      return { figures: await measureImages(runtime, bench.manyImages), errors: [], raw: {} };
    case 'pulls':
      return measurePullPhase(runtime, bench, false);
    case 'pullsBusy':
      return measurePullPhase(runtime, bench, true);
  }
};

/** No pod but those of the round, on one runtime at a time: others would count for its memory, and the node may not bear both. */
const withoutOthers = async (runtime: Runtime, bench: Bench, round: () => Promise<Measured>): Promise<Measured> => {
  const alone = { ...bench, runtimes: [runtime] };
  await removePods(alone);
  try {
    return await round();
  } finally {
    await removePods(alone);
  }
};

const measureDense = (runtime: Runtime, bench: Bench, { dense }: Plan): Promise<Measured> =>
  measureDensity(
    runtime,
    () => callClient(runtime, bench, 'dense', { count: dense, parallel: parallelPods }),
    (ids) => measureRestart(runtime, bench, ids),
    bench.signal,
  );

const measurePullPhase = async (runtime: Runtime, bench: Bench, isBusy: boolean): Promise<Measured> => {
  if (bench.pullImages === null) throw new Error('there are no images to be pulled');
  return { figures: await measurePulls(runtime, bench, bench.pullImages, isBusy), errors: [], raw: {} };
};

const failOn = (what: string, { name }: Runtime, errors: readonly string[] = []): void => {
  if (errors.length > 0) throw new Error(`${what} of ${name} failed: ${errors.join('; ')}`);
};

/** Stops and removes every pod that the client left. */
export const removePods = async (bench: Bench): Promise<void> => {
  for (const runtime of bench.runtimes) {
    failOn('removing the pods', runtime, (await callClient(runtime, bench, 'clean', { parallel: fillers })).errors);
  }
};

/** Runs a few pods on each runtime: what a program does for the first time is not what it does all day. */
const warmUp = async (bench: Bench, { pods }: Plan): Promise<void> => {
  for (const runtime of bench.runtimes) {
    bench.progress(`warming up ${runtime.name} with ${pods} pods`);
    const { errors } = await callClient(runtime, bench, 'lifecycle', { count: pods, parallel: fillers });
    failOn('running the first pods', runtime, errors);
  }
};

const fill = async (bench: Bench, { loaded }: Plan): Promise<Map<RuntimeName, readonly string[]>> => {
  const ids = new Map<RuntimeName, readonly string[]>();
  for (const runtime of bench.runtimes) {
    bench.progress(`running ${loaded} pods on ${runtime.name}`);
    const result = await callClient(runtime, bench, 'fill', { count: loaded, parallel: fillers });
    failOn(`running ${loaded} pods`, runtime, result.errors);
    ids.set(runtime.name, result.containerIds ?? []);
  }
  await sleep(REST_MS, undefined, { signal: bench.signal });
  return ids;
};

const describe = (figures: Figures): string =>
  Object.entries(figures)
    .map(([key, value]) => `${key} ${value.toFixed(1)}`)
    .join(', ');

/** Measures everything of the plan. Resolves with every measurement in the order in which they were made. */
export const measureAll = async (bench: Bench, plan: Plan): Promise<readonly Measurement[]> => {
  const measurements: Measurement[] = [];
  let ids: ReadonlyMap<RuntimeName, readonly string[]> | undefined;
  await warmUp(bench, plan);
  for (const phase of phaseNames.filter((name) => plan.phases.includes(name))) {
    if (loadedPhases.includes(phase)) ids ??= await fill(bench, plan);
    for (let round = 1; round <= plan.rounds; round += 1) {
      for (const runtime of bench.runtimes) {
        const measured = await measure(phase, runtime, bench, plan, ids?.get(runtime.name) ?? []);
        measurements.push({ phase, round, runtime: runtime.name, ...measured });
        const { figures, errors } = measured;
        bench.progress(
          `${phase} ${round} of ${plan.rounds}, ${runtime.name}: ${[describe(figures), ...errors].join('; ')}`,
        );
        await sleep(pauseMs, undefined, { signal: bench.signal });
      }
    }
  }
  return measurements;
};
