/**
 * Looks, once at start-up, for what the journal says is running: processes of tasks, and mounts that pin the namespaces
 * of pods without one. Says what is gone; what follows from that is decided by the domain.
 */
import { mountedAt } from '../platform/linux/mounts-below.ts';
import { readMountPoints } from '../platform/linux/mounts.ts';
import { isAlive } from '../platform/linux/processes.ts';
import type { NodeState } from '../domain/model/state.ts';
import { pinsThatShouldBe, tasksThatShouldRun } from '../domain/node/expected-tasks.ts';

/** Ids of tasks whose process does not run: pid and start time name it for ever. And of pods that lack a pin. */
export async function findDead(state: NodeState): Promise<string[]> {
  const dead = tasksThatShouldRun(state).map(async ({ id, task }) => ((await isAlive(task)) ? [] : [id]));
  return (await Promise.all([...dead, findUnpinned(state)])).flat();
}

async function findUnpinned(state: NodeState): Promise<string[]> {
  const pods = pinsThatShouldBe(state);
  if (pods.length === 0) return [];
  const isPinned = await pinChecker(pods);
  return pods.filter(({ paths }) => !paths.every(isPinned)).map(({ id }) => id);
}

/** Asked by path: the mount table has thousands of other lines, which take longer than all paths. */
async function pinChecker(pods: ReturnType<typeof pinsThatShouldBe>): Promise<(path: string) => boolean> {
  const found = new Map(pods.flatMap(({ paths }) => paths).map((path) => [path, mountedAt(path)]));
  if (!found.values().some((mounted) => mounted === 'unknown')) return (path) => found.get(path) === 'mount';
  const mounted = new Set(await readMountPoints());
  return (path) => mounted.has(path);
}
