/**
 * Handlers of the calls that ask for numbers: stats of containers and pods, their metrics, and the streams of both. Only
 * what runs has any.
 */
import { containerStateOf } from '../../domain/model/container-state.ts';
import { FailureError } from '../../domain/model/errors.ts';
import type { PodSandbox } from '../../domain/model/state.ts';
import type { Handlers } from './context.ts';
import * as wire from '../../wire/cri/api.ts';
import { matchesLabels } from './lists.ts';
import { everything, reading } from './calls.ts';
import { encodedInTurns } from './in-turns.ts';
import type { CriParts } from './parts.ts';
import type { ShownObjects } from './lookup.ts';
import { metricDescriptors } from './pod-metrics.ts';
import { streamedList } from './streamed-lists.ts';

type StatsMethods =
  | 'containerStats'
  | 'listContainerStats'
  | 'streamContainerStats'
  | 'podSandboxStats'
  | 'listPodSandboxStats'
  | 'streamPodSandboxStats'
  | 'listMetricDescriptors'
  | 'listPodSandboxMetrics'
  | 'streamPodSandboxMetrics';

export const statsHandlers = (
  parts: CriParts,
  { container, sandbox }: ShownObjects,
): Pick<Handlers<typeof wire.RuntimeServiceDefinition>, StatsMethods> => {
  const { view } = parts;

  const statsOfRunning = (filter: wire.ContainerStatsFilter | undefined): Promise<wire.ContainerStats[]> =>
    parts.statsOfAll(
      [...view.state.containers.values()].filter(
        (found) =>
          containerStateOf(found) === 'CONTAINER_RUNNING' &&
          found.id.startsWith(filter?.id ?? '') &&
          found.podSandboxId.startsWith(filter?.podSandboxId ?? '') &&
          matchesLabels(found.config.labels, parts.seals.labels(filter?.labelSelector ?? {})),
      ),
    );

  const readyPods = (filter: wire.PodSandboxStatsFilter | undefined): PodSandbox[] =>
    [...view.state.sandboxes.values()].filter(
      ({ id, phase, config }) =>
        phase === 'ready' &&
        id.startsWith(filter?.id ?? '') &&
        matchesLabels(config.labels, parts.seals.labels(filter?.labelSelector ?? {})),
    );

  /** Of a thousand containers it is 15 MiB. */
  const allMetrics = async (): Promise<Uint8Array> =>
    encodedInTurns(await parts.podMetricsOf(readyPods(undefined)), (metrics) =>
      wire.PodSandboxMetrics.encode(metrics).finish(),
    );

  return {
    containerStats: reading(
      parts,
      'ContainerStats',
      ({ containerId }) => containerId,
      async ({ containerId }) => {
        const found = container(containerId);
        // One that is created may have a task already, and so may one that has just exited.
        const isRunning = containerStateOf(found) === 'CONTAINER_RUNNING';
        const stats = isRunning ? await parts.statsOf(found) : null;
        if (stats === null)
          throw new FailureError('WrongState', `Container ${found.id} is not running; only running ones have stats.`);
        return { stats };
      },
    ),
    listContainerStats: reading(
      parts,
      'ListContainerStats',
      ({ filter }) => filter?.id ?? '',
      async ({ filter }) => ({ stats: await statsOfRunning(filter) }),
    ),
    streamContainerStats: streamedList(
      parts,
      'StreamContainerStats',
      ({ filter }) => filter?.id ?? '',
      async ({ filter }) => wire.ListContainerStatsResponse.encode({ stats: await statsOfRunning(filter) }).finish(),
    ),

    podSandboxStats: reading(
      parts,
      'PodSandboxStats',
      ({ podSandboxId }) => podSandboxId,
      async ({ podSandboxId }) => {
        const found = sandbox(podSandboxId);
        const [stats] = found.phase === 'ready' ? await parts.podStatsOf([found]) : [];
        if (stats === undefined)
          throw new FailureError('WrongState', `Pod sandbox ${found.id} is not ready; only ready ones have stats.`);
        return { stats };
      },
    ),
    listPodSandboxStats: reading(
      parts,
      'ListPodSandboxStats',
      ({ filter }) => filter?.id ?? '',
      async ({ filter }) => ({ stats: await parts.podStatsOf(readyPods(filter)) }),
    ),
    streamPodSandboxStats: streamedList(
      parts,
      'StreamPodSandboxStats',
      ({ filter }) => filter?.id ?? '',
      async ({ filter }) =>
        wire.ListPodSandboxStatsResponse.encode({ stats: await parts.podStatsOf(readyPods(filter)) }).finish(),
    ),
    listMetricDescriptors: reading(parts, 'ListMetricDescriptors', everything, () => ({
      descriptors: [...metricDescriptors],
    })),
    listPodSandboxMetrics: reading(parts, 'ListPodSandboxMetrics', everything, allMetrics),
    streamPodSandboxMetrics: streamedList(parts, 'StreamPodSandboxMetrics', everything, allMetrics),
  };
};
