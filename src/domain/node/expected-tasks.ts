/**
 * Says which tasks ought to be running and which namespaces ought to be pinned, by the state that a start has folded,
 * so that the caller can look for them. Decides nothing: the decision is about the daemon.started that follows.
 */
import { pinPaths } from '../pod-sandbox/sandboxer.ts';
import { namespacePins } from '../oci/namespaces.ts';
import { liveTaskOf } from '../model/container-state.ts';
import type { NodeState } from '../model/state.ts';
import type { LaunchedTask } from '../model/tasks.ts';

/** Sandboxes and containers that were running when the journal ends, with the process each should be. */
export function tasksThatShouldRun(state: NodeState): { readonly id: string; readonly task: LaunchedTask }[] {
  const tasks: { id: string; task: LaunchedTask }[] = [];
  // A sandbox that its shim holds elsewhere is no process of this node: its shim is asked.
  for (const { id, task, taskExit } of state.sandboxes.values())
    if (task !== null && task.pid !== 0 && taskExit === null) tasks.push({ id, task });
  for (const container of state.containers.values()) {
    const task = liveTaskOf(container);
    if (task !== null) tasks.push({ id: container.id, task });
  }
  return tasks;
}

/** READY sandboxes without a pause task, with the paths that their namespaces should be pinned at. */
export function pinsThatShouldBe(state: NodeState): { readonly id: string; readonly paths: readonly string[] }[] {
  const { facts } = state;
  if (facts === null) return [];
  return [...state.sandboxes.values()]
    .filter(({ sandboxer, phase }) => sandboxer === 'none' && phase === 'ready')
    .map(({ id, config }) => ({ id, paths: pinPaths(namespacePins(facts, id, config)) }));
}
