/**
 * Which pods have one shim together, where their runtime handler lets several (pods_per_shim). Chosen when a shim is asked
 * for, and said by that intent, so that the journal knows at every moment who has which. Must request nothing.
 *
 *   StartShim ──> the fullest sound shim of the handler's that has room, started or being started; else one more
 *   StopShim  ──> the last pod that asks ends it; before that it runs on
 *
 * A pod has it from the request of StartShim until that of StopShim. Both are decided one at a time, so that of two pods
 * that leave together exactly one is the last, and none joins a shim that is being ended.
 */
import type { Intent } from '../model/records.ts';
import { takesRuncOptions } from '../model/runtime-handler.ts';
import type { NodeState, PodSandbox } from '../model/state.ts';
import { isClear } from './step-states.ts';

export const startShimIntent = (state: NodeState, sandbox: PodSandbox): Intent => {
  const { id, handler, sandboxer } = sandbox;
  const podsMax = handler.podsPerShim ?? 1;
  // Shims of machines, and those that hold a sandbox themselves, are made for one pod.
  if (podsMax <= 1 || !takesRuncOptions(handler) || sandboxer === 'shim') return { kind: 'StartShim' };
  return { kind: 'StartShim', sharedShimId: withRoom(state, sandbox, podsMax) ?? unusedId(state, `shared-${id}`) };
};

/** Of a shim that the pod had before, and that died, something may still be cleared up for others. */
function unusedId({ sandboxes }: NodeState, wanted: string): string {
  const used = new Set(
    [...sandboxes.values()].flatMap(({ sharedShimId, steps }) => (isClear(steps.shim ?? 'none') ? [] : [sharedShimId])),
  );
  let id = wanted;
  for (let n = 2; used.has(id); n += 1) id = `${wanted}-${n}`;
  return id;
}

/**
 * Ids of shims that may serve another pod after the one that has them now. A pod that let go of its shim still knows which it
 * was; that one is another's by now, or nobody's.
 */
export const borrowedShimIds = ({ sandboxes }: NodeState): ReadonlySet<string> =>
  new Set(
    [...sandboxes.values()].flatMap(({ shim, steps }) =>
      isClear(steps.shim ?? 'none') ? [] : (shim?.origin?.id ?? []),
    ),
  );

/** Another pod has, or is about to have, the shim that this one is to be without. */
export const isShimInUse = (state: NodeState, { id, sharedShimId }: PodSandbox): boolean =>
  [...state.sandboxes.values()].some((other) => other.id !== id && other.sharedShimId === sharedShimId && hasIt(other));

const hasIt = ({ steps }: PodSandbox): boolean => steps.shim === 'doing' || steps.shim === 'done';

function withRoom({ sandboxes }: NodeState, { handler }: PodSandbox, podsMax: number): string | undefined {
  const byShim = new Map<string, PodSandbox[]>();
  for (const sandbox of sandboxes.values()) {
    if (sandbox.sharedShimId === undefined || !hasIt(sandbox)) continue;
    const pods = byShim.get(sandbox.sharedShimId);
    if (pods === undefined) byShim.set(sandbox.sharedShimId, [sandbox]);
    else pods.push(sandbox);
  }
  let found: { readonly id: string; readonly pods: number } | undefined;
  for (const [id, pods] of byShim)
    if (pods.length < podsMax && pods.length > (found?.pods ?? 0) && pods.every((pod) => isSound(pod, handler)))
      found = { id, pods: pods.length };
  return found?.id;
}

/** Started by the same program of the same handler, and not known to be dead or silent. */
const isSound = ({ handler, steps, shimContact }: PodSandbox, wanted: PodSandbox['handler']): boolean =>
  handler.name === wanted.name &&
  handler.runtimeType === wanted.runtimeType &&
  handler.shimPath === wanted.shimPath &&
  (steps.shim === 'doing' || shimContact === 'connected');
