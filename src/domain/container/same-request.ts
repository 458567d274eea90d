/**
 * Whether two requests are for the same container (C5). kubelet writes a container's termination message into a file that
 * it mounts from a path with a random number, another one each time that it asks: that number says nothing of what is
 * asked for. Everything else has to be the same.
 */
import type { ContainerConfig } from '../model/cri.ts';
import { sameJson } from '../values/json.ts';
import { rulesOf } from '../model/rules.ts';
import type { NodeState } from '../model/state.ts';

/** The annotation by which kubelet tells where in the container the file is, and where it is by default. */
const TERMINATION_PATH_KEY = 'io.kubernetes.container.terminationMessagePath';
const DEFAULT_TERMINATION_PATH = '/dev/termination-log';

/** What kubelet makes of a random number, as the last part of a path. */
const RANDOM_PART = /\/[0-9a-f]{8}$/;

function identifying(config: ContainerConfig): ContainerConfig {
  const { mounts, annotations } = config;
  if (mounts === undefined) return config;
  const terminationPath = annotations?.[TERMINATION_PATH_KEY] ?? DEFAULT_TERMINATION_PATH;
  return {
    ...config,
    mounts: mounts.map((mount) =>
      mount.containerPath === terminationPath
        ? { ...mount, hostPath: (mount.hostPath ?? '').replace(RANDOM_PART, '/') }
        : mount,
    ),
  };
}

export function isSameRequest(state: Pick<NodeState, 'facts'>, one: ContainerConfig, other: ContainerConfig): boolean {
  if (rulesOf(state) < 2) return sameJson(one, other);
  return sameJson(identifying(one), identifying(other));
}
