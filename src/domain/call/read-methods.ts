/** The RPCs that change nothing, of CRI and of scribe's own Daemon service: adapters answer them from the published view. */
export const readMethods = [
  ...(['Version', 'Status', 'RuntimeConfig', 'GetContainerEvents'] as const),
  ...(['ListPodSandbox', 'StreamPodSandboxes', 'PodSandboxStatus'] as const),
  ...(['ListContainers', 'StreamContainers', 'ContainerStatus'] as const),
  ...(['ContainerStats', 'ListContainerStats', 'StreamContainerStats'] as const),
  ...(['PodSandboxStats', 'ListPodSandboxStats', 'StreamPodSandboxStats'] as const),
  ...(['ListMetricDescriptors', 'ListPodSandboxMetrics', 'StreamPodSandboxMetrics'] as const),
  ...(['ListImages', 'StreamImages', 'ImageStatus', 'ImageFsInfo'] as const),
  ...(['State', 'ListNriPlugins', 'CompactJournal'] as const),
] as const;
export type ReadMethod = (typeof readMethods)[number];
