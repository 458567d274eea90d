/** Which pods a plugin hears of: all, or those that the configuration binds it to. */
import type { NriPluginSettings } from '../../domain/model/nri-settings.ts';
import type { Container, PodSandbox } from '../../wire/nri/api.ts';

export interface Everything {
  readonly pods: readonly PodSandbox[];
  readonly containers: readonly Container[];
}

export interface Binding {
  /** Whether the plugin hears of the pod. A pod that is gone, of which there is its id alone, is what it was. */
  readonly includes: (pod: Pick<PodSandbox, 'id' | 'namespace' | 'labels'> | undefined) => boolean;
  /** Of all there is, what the plugin is told. */
  readonly partOf: (pods: readonly PodSandbox[], containers: readonly Container[]) => Everything;
  /** There will be nothing more of this pod. */
  readonly forget: (podSandboxId: string) => void;
}

const UNBOUND: Binding = {
  includes: () => true,
  partOf: (pods, containers) => ({ pods, containers }),
  forget: () => undefined,
};

export const createBinding = (settings: Pick<NriPluginSettings, 'namespaces' | 'labels'> | undefined): Binding => {
  const { namespaces = null, labels = {} } = settings ?? {};
  const wanted = Object.entries(labels);
  if (namespaces === null && wanted.length === 0) return UNBOUND;
  const included = new Set<string>();

  const includes: Binding['includes'] = (pod) => {
    if (pod === undefined) return false;
    if (pod.namespace === '') return included.has(pod.id);
    const isNamed = namespaces === null || namespaces.includes(pod.namespace);
    const isIncluded = isNamed && wanted.every(([key, value]) => pod.labels[key] === value);
    if (isIncluded) included.add(pod.id);
    return isIncluded;
  };

  return {
    includes,
    partOf: (pods, containers) => {
      const part = pods.filter(includes);
      const ids = new Set(part.map(({ id }) => id));
      return { pods: part, containers: containers.filter(({ podSandboxId }) => ids.has(podSandboxId)) };
    },
    forget: (podSandboxId) => void included.delete(podSandboxId),
  };
};
