/** ContainerStats messages from what the cgroup files said. */
import type { Container } from '../../domain/state.ts';
import type { ContainerUsage } from '../stats/types.ts';
import type * as wire from '../wire/cri/api.ts';
import { containerMetadata, labelsOf } from './to-wire.ts';

export const containerStats = (
  container: Container,
  usage: ContainerUsage,
  writableLayer: wire.FilesystemUsage | undefined,
): wire.ContainerStats => ({
  attributes: {
    id: container.id,
    metadata: containerMetadata(container.config.metadata ?? {}),
    labels: labelsOf(container.config.labels),
    annotations: labelsOf(container.config.annotations),
  },
  cpu: usage.cpu,
  memory: usage.memory,
  writableLayer,
  swap: usage.swap,
  io: usage.io,
});
