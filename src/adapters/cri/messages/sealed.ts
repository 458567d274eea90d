/** Configurations with what the node's policy has sealed of them, before anybody writes them down. Pure. */
import type { ContainerConfig, ImageSpec, PodSandboxConfig } from '../../../domain/model/cri.ts';
import type { CriParts } from '../parts.ts';

type Seals = CriParts['seals'];
interface Described {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const sealed = <T extends Described>({ labels, annotations }: Seals, described: T): T => ({
  ...described,
  ...(described.labels === undefined ? {} : { labels: labels(described.labels) }),
  ...(described.annotations === undefined ? {} : { annotations: annotations(described.annotations) }),
});

export const sealedPod = (seals: Seals, config: PodSandboxConfig): PodSandboxConfig => sealed(seals, config);

export const sealedContainer = (seals: Seals, config: ContainerConfig): ContainerConfig => {
  const { image, mounts } = config;
  const ofImage = (spec: ImageSpec): { readonly image: ImageSpec } => ({ image: sealed(seals, spec) });
  return {
    ...sealed(seals, seals.command(config)),
    ...(image === undefined ? {} : ofImage(image)),
    ...(mounts === undefined
      ? {}
      : { mounts: mounts.map((mount) => (mount.image === undefined ? mount : { ...mount, ...ofImage(mount.image) })) }),
  };
};

/** Whoever looks for a sealed label names its value. */
export const sealedFilter = <F extends { readonly labelSelector: { [key: string]: string } }>(
  { labels }: Seals,
  filter: F | undefined,
): F | undefined => (filter === undefined ? undefined : { ...filter, labelSelector: labels(filter.labelSelector) });
