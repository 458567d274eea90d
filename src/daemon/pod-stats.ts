/**
 * Stats and metrics of pods, put together from their cgroup, their containers' and their interfaces. The cgroup is the one
 * that the client named as the pod's own (kubelet makes one for each); without it a pod uses what its containers do.
 */
import type { CriParts } from '../adapters/cri/parts.ts';
import { type ContainerFigures, podSandboxMetrics } from '../adapters/cri/pod-metrics.ts';
import { podSandboxStats } from '../adapters/cri/stats.ts';
import type {
  CgroupFigures,
  FiguresWanted,
  FileSystemFigures,
  InterfaceCounters,
  StatsReader,
  StatsTarget,
  UsageCollector,
} from '../adapters/stats/types.ts';
import { usageOfAll } from '../adapters/stats/usage.ts';
import { containerStateOf, liveTaskOf } from '../domain/model/container-state.ts';
import { messageOf } from '../domain/model/errors.ts';
import { podCgroupPath } from '../domain/oci/resources.ts';
import { subjectOf } from '../domain/model/records.ts';
import { cgroupDriverOf } from '../domain/oci/specs.ts';
import type { Container, PodSandbox } from '../domain/model/state.ts';
import type { Clock, ReadModel } from '../engine/ports.ts';
import { type ContainerStatsParts, runningAtStart } from './container-stats.ts';

export interface PodStatsOptions {
  readonly view: ReadModel;
  readonly reader: StatsReader;
  readonly usage: Pick<UsageCollector, 'counted' | 'usageOf'>;
  readonly clock: Pick<Clock, 'nowNs'>;
  /** That writable layers are on. */
  readonly readFileSystem: () => Promise<FileSystemFigures>;
  /** Interfaces but loopback of the network namespace that is pinned at a path; null where none is. */
  readonly interfacesIn: (netnsPath: string) => Promise<readonly InterfaceCounters[] | null>;
  readonly containers: Pick<ContainerStatsParts, 'statsOfAll' | 'targetOf'>;
  /** Told when something can't be read though it is there. */
  readonly report: (message: string) => void;
}

function targetOf({ id, handler, config }: PodSandbox): StatsTarget | null {
  const cgroupPath = podCgroupPath(cgroupDriverOf(handler), config.linux?.cgroupParent);
  return cgroupPath === null ? null : { id, cgroupPath, withProcesses: true };
}

/** Pods are sampled from their first container on while somebody asks for stats, so that its first are told without a wait. */
function watchPods({ view, reader }: Pick<PodStatsOptions, 'view' | 'reader'>): void {
  function watchPodOf(containerId: string): void {
    const container = view.state.containers.get(containerId);
    const sandbox = container === undefined ? undefined : view.state.sandboxes.get(container.podSandboxId);
    const target = sandbox === undefined ? null : targetOf(sandbox);
    if (target !== null) reader.watch(target);
  }

  view.recordsOf('container.started').subscribe(({ stream }) => watchPodOf(subjectOf(stream).id));
  view.recordsOf('sandbox.stopping', 'sandbox.removed').subscribe(({ stream }) => reader.forget(subjectOf(stream).id));

  runningAtStart(view, ({ id }) => watchPodOf(id));
}

/** What is read of one pod or container at a time. */
function createReadings({ reader, usage, clock, containers, interfacesIn, report }: PodStatsOptions) {
  /** What is there all the same is told; what can't be read is reported and passed over. */
  async function tried<T>(what: string, work: () => Promise<T | null>): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      report(`Reading ${what} failed: ${messageOf(error)}`);
      return null;
    }
  }

  /**
   * Any process of the pod sees its network. Where none is, as between the tries of containers that crash, somebody has to
   * go in and look. null where the pod has the node's.
   */
  async function interfacesOf(
    { id, network, task, taskExit }: PodSandbox,
    running: readonly Container[],
  ): Promise<readonly InterfaceCounters[] | null> {
    if (network === null) return null;
    const pause = taskExit === null ? task : null;
    for (const process of [pause, ...running.map(liveTaskOf)]) {
      if (process === null) continue;
      // One that has just ended tells nothing; the next may.
      const interfaces = await tried(`the interfaces of pod ${id}`, () => reader.readInterfaces(process));
      if (interfaces !== null) return interfaces;
    }
    return tried(`the interfaces of pod ${id}`, () => interfacesIn(network.netnsPath));
  }

  /** null where its cgroups have gone, or can't be read. */
  async function readFigures(container: Container, wanted: FiguresWanted): Promise<CgroupFigures | null> {
    const target = containers.targetOf(container);
    if (target === null) return null;
    return tried(`the cgroups of container ${container.id}`, () => reader.readFigures(target, wanted));
  }

  async function processesIn(running: readonly Container[]): Promise<bigint | undefined> {
    const figures = await Promise.all(running.map((container) => readFigures(container, 'cgroup')));
    const counts = figures.flatMap((found) => found?.threads ?? []);
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + count, 0n);
  }

  async function figuresOf(
    container: Container,
    fileSystem: FileSystemFigures | undefined,
  ): Promise<ContainerFigures[]> {
    const figures = await readFigures(container, 'all');
    if (figures === null) return [];
    const layer = usage.usageOf(container.id);
    const usedBytes = layer?.usedBytes === undefined ? undefined : BigInt(layer.usedBytes.value);
    const counted =
      layer === undefined || usedBytes === undefined ? undefined : { usedBytes, countedAtNs: layer.timestamp };
    return [{ container, figures, layer: counted, fileSystem, seenAtNs: clock.nowNs() }];
  }

  return { tried, interfacesOf, processesIn, figuresOf };
}

export function createPodStats(options: PodStatsOptions): Pick<CriParts, 'podStatsOf' | 'podMetricsOf'> {
  const { view, reader, clock, containers } = options;
  const { tried, interfacesOf, processesIn, figuresOf } = createReadings(options);
  watchPods(options);

  /** By pod, in one walk: a node has as many containers as pods, and more. */
  function runningByPod(): ReadonlyMap<string, readonly Container[]> {
    const running = [...view.state.containers.values()].filter(
      (container) => containerStateOf(container) === 'CONTAINER_RUNNING',
    );
    return Map.groupBy(running, ({ podSandboxId }) => podSandboxId);
  }

  async function podStatsOf(sandboxes: readonly PodSandbox[]) {
    const byPod = runningByPod();
    const running = sandboxes.map(({ id }) => byPod.get(id) ?? []);
    const own = sandboxes.flatMap((sandbox) => targetOf(sandbox) ?? []);
    const [usages, usagesOfContainers, stats] = await Promise.all([
      reader.readAll(own),
      reader.readAll(running.flat().flatMap((container) => containers.targetOf(container) ?? [])),
      containers.statsOfAll(running.flat()),
    ]);
    const statsById = new Map(stats.map((one) => [one.attributes?.id ?? '', one]));
    const timestamp = String(clock.nowNs());
    const all = sandboxes.map(async (sandbox, index) => {
      const inside = running[index] ?? [];
      const usageOfContainers = async () => {
        const usagesInside = inside.flatMap(({ id }) => usagesOfContainers.get(id) ?? []);
        return usageOfAll(timestamp, usagesInside, await processesIn(inside));
      };
      const podUsage = usages.get(sandbox.id) ?? (await usageOfContainers());
      const interfaces = await interfacesOf(sandbox, inside);
      const statsInside = inside.flatMap(({ id }) => statsById.get(id) ?? []);
      // It may have gone meanwhile.
      if (view.state.sandboxes.get(sandbox.id)?.phase !== 'ready') return [];
      return [podSandboxStats(sandbox, { timestamp, usage: podUsage, interfaces, containers: statsInside })];
    });
    return (await Promise.all(all)).flat();
  }

  async function podMetricsOf(sandboxes: readonly PodSandbox[]) {
    await options.usage.counted();
    const byPod = runningByPod();
    // Its directory is there from the first container on.
    const fileSystem =
      byPod.size === 0 ? null : await tried('the file system of writable layers', options.readFileSystem);
    return Promise.all(
      sandboxes.map(async (sandbox) => {
        const running = byPod.get(sandbox.id) ?? [];
        const [interfaces, figures] = await Promise.all([
          interfacesOf(sandbox, running),
          Promise.all(running.map((container) => figuresOf(container, fileSystem ?? undefined))),
        ]);
        return podSandboxMetrics({
          sandbox,
          interfaces: interfaces ?? [],
          containers: figures.flat(),
        });
      }),
    );
  }

  return { podStatsOf, podMetricsOf };
}
