/**
 * What ContainerStats and PodSandboxStats say, from cgroup files, without asking a shim where these tell it. Remembers the
 * containers it was asked about as long as somebody asks: keeps their files open, and samples their CPU time so that
 * usage_nano_cores can be told. The first question about one takes two looks. One container that has gone must not fail a list, and a list of many must not keep
 * other work of the daemon waiting.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CgroupFacts } from '../../domain/model/node-facts.ts';
import type { Clock } from '../../engine/ports.ts';
import { cgroupDirectory } from '../../platform/linux/cgroup-path.ts';
import { type CgroupFile, FILE_BYTES_MAX, type OpenFiles, openCgroupFiles } from './cgroup-files.ts';
import { type CpuRate, createCpuRate, SPAN_FIRST_MS } from './cpu-rate.ts';
import { readFigures } from './figures.ts';
import { createBufferPool } from './buffer-pool.ts';
import { readInterfaces } from './network.ts';
import { createRounds } from './rounds.ts';
import type { CgroupFigures, CgroupUsage, StatsReader, StatsTarget, TaskFiguresOf } from './types.ts';
import { cgroupUsage, cpuTimeNs, usageOfFigures } from './usage.ts';

/** Reads under way at once: as many as libuv has threads, so that others' reads get their turn. */
const BUFFERS = 4;
/** A timer may be a moment early by the other clock. */
const LOOKS_APART_MS = SPAN_FIRST_MS + 10;

export interface StatsReaderOptions {
  readonly cgroup: Pick<CgroupFacts, 'version' | 'controllers'>;
  readonly clock: Pick<Clock, 'nowNs' | 'monoNs'>;
  readonly taskFigures: TaskFiguresOf;
  /** Told when a container's files can't be read though they are there. */
  readonly report: (message: string) => void;
}

const FILES_V1 = [
  ['cpuacct', 'cpuacct.usage'],
  ['memory', 'memory.usage_in_bytes'],
  ['memory', 'memory.stat'],
] as const;

const FILES_V2 = [
  'cpu.stat',
  'cpu.pressure',
  'memory.current',
  'memory.stat',
  'memory.max',
  'memory.swap.current',
  'memory.swap.max',
  'memory.pressure',
  'io.pressure',
];

const PROCESSES = ['pids', 'pids.current'] as const;

const UNIFIED_ROOT = '/sys/fs/cgroup';

interface Watched {
  readonly target: StatsTarget;
  readonly files: Promise<OpenFiles | null>;
  readonly rate: CpuRate;
  /** The look at its files that is under way: whoever asks meanwhile gets the same. */
  look: Promise<CgroupUsage | null> | null;
}

const rootOfV2 = (controllers: CgroupFacts['controllers']): string => Object.values(controllers)[0] ?? UNIFIED_ROOT;

/** All files of interest of the cgroup, where this host's hierarchies have it. */
const filesIn = (
  { version, controllers }: StatsReaderOptions['cgroup'],
  directory: string,
  withProcesses: boolean,
): CgroupFile[] => {
  if (version === 2) {
    const names = withProcesses ? [...FILES_V2, PROCESSES[1]] : FILES_V2;
    return names.map((name) => ({ directory: join(rootOfV2(controllers), directory), name }));
  }
  return [...FILES_V1, ...(withProcesses ? [PROCESSES] : [])].flatMap(([controller, name]) => {
    const root = controllers[controller];
    return root === undefined ? [] : [{ directory: join(root, directory), name }];
  });
};

/** One per daemon; reads nothing before it is asked to. */
export const createStatsReader = ({ cgroup, clock, taskFigures, report }: StatsReaderOptions): StatsReader => {
  const { version } = cgroup;
  const watched = new Map<string, Watched>();
  const withBuffer = createBufferPool(BUFFERS, FILE_BYTES_MAX);

  const closeFiles = async ({ files, look: underWay }: Watched): Promise<void> => {
    // A descriptor must not be closed under a read: its number could be another file's by then.
    await Promise.allSettled([underWay]);
    // Whoever asked has been told why they could not be opened.
    const open = await files.catch(() => null);
    await open?.close();
  };

  const forget = (id: string): void => {
    const container = watched.get(id);
    if (container === undefined) return;
    watched.delete(id);
    closeFiles(container).catch((error: unknown) =>
      report(`Closing the cgroup files of ${id} failed: ${String(error)}`),
    );
  };

  const watchedOf = (target: StatsTarget): Watched | null => {
    const known = watched.get(target.id);
    if (known !== undefined) return known;
    const directory = cgroupDirectory(target.cgroupPath);
    if (directory === null) return null;
    const files = withBuffer(() => openCgroupFiles(filesIn(cgroup, directory, target.withProcesses ?? false)));
    const container: Watched = { target, files, rate: createCpuRate(), look: null };
    watched.set(target.id, container);
    return container;
  };

  const askShim = async ({ id, podSandboxId }: StatsTarget): Promise<CgroupFigures | null> =>
    podSandboxId === undefined ? null : taskFigures(podSandboxId, id);

  const rateOf = (rate: CpuRate, cpuNs: bigint | undefined): bigint | undefined =>
    cpuNs === undefined ? undefined : rate.add(clock.monoNs(), cpuNs);

  const lookOnce = async ({ target, files, rate }: Watched): Promise<CgroupUsage | null> => {
    const told = await askShim(target);
    if (told !== null) return usageOfFigures(told, String(clock.nowNs()), rateOf(rate, told.cpuNs));
    const open = await files;
    const texts = open === null ? null : await withBuffer(open.read);
    if (texts === null) return null;
    const nanoCores = rateOf(rate, cpuTimeNs(version, texts));
    return cgroupUsage(version, texts, String(clock.nowNs()), nanoCores);
  };

  /** What it uses of the processors now takes two looks, where nobody looked before. */
  const look = async (container: Watched): Promise<CgroupUsage | null> => {
    const usage = await lookOnce(container);
    if (usage?.cpu === undefined || usage.cpu.usageNanoCores !== undefined) return usage;
    await sleep(LOOKS_APART_MS);
    return lookOnce(container);
  };

  const read: StatsReader['read'] = async (target) => {
    const container = watchedOf(target);
    if (container === null) return null;
    container.look ??= look(container).finally(() => {
      container.look = null;
    });
    let usage: CgroupUsage | null = null;
    try {
      usage = await container.look;
      return usage;
    } finally {
      // Gone, or not to be read: whoever asks next starts afresh.
      if (usage === null && watched.get(target.id) === container) forget(target.id);
    }
  };

  const tryRead = async (target: StatsTarget): Promise<CgroupUsage | null> => {
    try {
      return await read(target);
    } catch (error) {
      report(`Reading the cgroups of ${target.id} failed: ${String(error)}`);
      return null;
    }
  };

  const readAll: StatsReader['readAll'] = async (targets) => {
    const usages = await Promise.all(targets.map(tryRead));
    const found = usages.map((usage, index) => [targets[index]?.id ?? '', usage] as const);
    return new Map(found.filter((entry): entry is readonly [string, CgroupUsage] => entry[1] !== null));
  };

  const forgetAll = (): void => [...watched.keys()].forEach(forget);

  const samples = createRounds({
    round: () => void Promise.all(watched.values().map(({ target }) => tryRead(target))),
    rest: forgetAll,
  });

  return {
    read: async (target) => {
      samples.asked();
      return read(target);
    },
    readAll: async (targets) => {
      samples.asked();
      return readAll(targets);
    },
    readFigures: async (target, wanted) => (await askShim(target)) ?? readFigures(cgroup, target, wanted, withBuffer),
    readInterfaces: (process) => withBuffer((buffer) => readInterfaces(process, buffer)),
    watch: (target) => {
      if (samples.isAsked()) void tryRead(target);
    },
    forget,
    close: () => {
      samples.close();
      forgetAll();
    },
  };
};
