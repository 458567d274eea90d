/**
 * Which pods a plugin hears of: all, or those that the configuration binds it to. Judged by what each request says of its
 * pod, and by nothing else: a plugin may stay connected for longer than any pod.
 */
import type { NriPluginSettings } from '../../domain/model/nri-settings.ts';
import type { Container, PodSandbox } from '../../wire/nri/api.ts';

export interface Everything {
  readonly pods: readonly PodSandbox[];
  readonly containers: readonly Container[];
}

export interface Binding {
  /** Whether the plugin hears of the pod. */
  readonly includes: (pod: Pick<PodSandbox, 'namespace' | 'labels'> | undefined) => boolean;
  /** Of all there is, what the plugin is told. */
  readonly partOf: (pods: readonly PodSandbox[], containers: readonly Container[]) => Everything;
}

const UNBOUND: Binding = {
  includes: () => true,
  partOf: (pods, containers) => ({ pods, containers }),
};

export const createBinding = (settings: Pick<NriPluginSettings, 'namespaces' | 'labels'> | undefined): Binding => {
  const { namespaces = null, labels = {} } = settings ?? {};
  const wanted = Object.entries(labels);
  if (namespaces === null && wanted.length === 0) return UNBOUND;

  const includes: Binding['includes'] = (pod) => {
    if (pod === undefined) return false;
    const isNamed = namespaces === null || namespaces.includes(pod.namespace);
    return isNamed && wanted.every(([key, value]) => pod.labels[key] === value);
  };

  return {
    includes,
    partOf: (pods, containers) => {
      const part = pods.filter(includes);
      const ids = new Set(part.map(({ id }) => id));
      return { pods: part, containers: containers.filter(({ podSandboxId }) => ids.has(podSandboxId)) };
    },
  };
};
