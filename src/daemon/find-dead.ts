/**
 * Looks, once at start-up, for what the journal says is running: processes of tasks, and mounts that pin the namespaces
 * of pods without one. Says what is gone; what follows from that is decided by the domain.
 */
import { readMountInfo } from '../platform/linux/mounts.ts';
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
  const mounted = new Set((await readMountInfo()).map(({ mountPoint }) => mountPoint));
  return pods.filter(({ paths }) => !paths.every((path) => mounted.has(path))).map(({ id }) => id);
}
