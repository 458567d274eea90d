/**
 * A node for tests: a network namespace with a registry in it, a daemon that gets its images there, and a busybox
 * image pulled.
 */
import { busyboxImage, type Image } from '../../scripts/lib/image.ts';
import type { Owner } from './cleanup.ts';
import { type Daemon, type DaemonOptions, startDaemon } from './daemon.ts';
import { netnsOf } from './netns.ts';
import { type Registry, type RegistryOptions, startRegistry } from './registry.ts';

/** The registry that the node's registry stands in for. */
const registryName = 'registry.example';
export const busyboxName = `${registryName}/busybox:latest`;

export interface TestNode {
  readonly daemon: Daemon;
  readonly registry: Registry;
  /** What busyboxName is. */
  readonly busybox: Image;
}

export interface NodeOptions extends Omit<DaemonOptions, 'netns' | 'registryConfigDir'> {
  readonly registry?: Pick<RegistryOptions, 'config'>;
}

/** Starts registry and daemon, and pulls the image unless the registry has a configuration of its own. */
export const startNode = async (owner: Owner, options: NodeOptions = {}): Promise<TestNode> => {
  const netns = await netnsOf(owner);
  const registry = await startRegistry(owner, { netns, ...options.registry });
  const busybox = await busyboxImage();
  await registry.push('busybox', 'latest', busybox);
  const registryConfigDir = await registry.mirrorsFor([registryName]);
  const daemon = await startDaemon(owner, { ...options, netns, registryConfigDir });
  if (options.registry === undefined) await daemon.cri.image.pullImage({ image: { image: busyboxName } });
  return { daemon, registry, busybox };
};
