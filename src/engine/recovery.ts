/**
 * What a start does before it serves: folds the journal (snapshot and tail) and says which tasks ought to be running,
 * so that the caller can look for their processes. Reads only; what is decided from it is decided by the domain, on
 * the daemon.started that follows.
 */
import { EVOLVER_VERSION, evolve } from '../domain/evolve.ts';
import { namespacePins, pinPaths } from '../domain/pod-sandbox/sandboxer.ts';
import { readState } from '../domain/snapshot.ts';
import { initialState, type NodeState } from '../domain/state.ts';
import type { LaunchedTask } from '../domain/tasks.ts';
import type { Journal } from '../journal/types.ts';
import { fromJournalRecord } from './codec.ts';

export interface FoldedJournal {
  readonly state: NodeState;
  /** seq of the snapshot that the fold began with; 0 without one. */
  readonly snapshotSeq: number;
}

/** Folds up to and including `toSeq` (by default all). */
export async function foldJournal(
  journal: Pick<Journal, 'read' | 'newestSnapshot'>,
  toSeq?: number,
): Promise<FoldedJournal> {
  const newest = await journal.newestSnapshot(EVOLVER_VERSION);
  const snapshot = newest !== null && (toSeq === undefined || newest.seq <= toSeq) ? newest : null;
  const state = snapshot === null ? initialState() : readState(snapshot.state);
  for await (const record of journal.read({
    fromSeq: (snapshot?.seq ?? 0) + 1,
    ...(toSeq === undefined ? {} : { toSeq }),
  })) {
    const sequenced = fromJournalRecord(record);
    if (sequenced !== null) evolve(state, sequenced);
  }
  return { state, snapshotSeq: snapshot?.seq ?? 0 };
}

/** Sandboxes and containers that were running when the journal ends, with the process each should be. */
export function tasksThatShouldRun(state: NodeState): { readonly id: string; readonly task: LaunchedTask }[] {
  const tasks: { id: string; task: LaunchedTask }[] = [];
  // A sandbox that its shim holds elsewhere is no process of this node: its shim is asked.
  for (const { id, task, taskExit } of state.sandboxes.values())
    if (task !== null && task.pid !== 0 && taskExit === null) tasks.push({ id, task });
  for (const { id, task, exit } of state.containers.values())
    if (task !== null && exit === null) tasks.push({ id, task });
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

/** Streams of objects that are gone: their bodies may be pruned without changing what the rest folds to (C11). */
export function isClosedStream(state: NodeState, stream: string): boolean {
  const slash = stream.indexOf('/');
  const kind = stream.slice(0, slash);
  const id = stream.slice(slash + 1);
  switch (kind) {
    case 'sandbox':
      return !state.sandboxes.has(id);
    case 'container':
      return !state.containers.has(id);
    case 'image':
      return !state.images.has(id);
    case 'call':
      return ![...state.calls.values()].some((call) => call.stream === stream);
    default:
      return false;
  }
}
