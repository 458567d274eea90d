/** From an intent on the node to the whole request that an adapter can perform: a function of the state alone. */
import { isAnnounced } from '../container/hooks.ts';
import { bug, type EffectRequest, misplaced, perform } from '../deciding/effect-request.ts';
import { containerStateOf } from '../model/container-state.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { NriContainer } from '../model/nri-views.ts';
import type { Intent } from '../model/records.ts';
import type { Container, NodeState, PodSandbox } from '../model/state.ts';
import { containerNow } from '../nri/of-state.ts';
import { pluginsOf } from '../nri/plugins.ts';
import { isPodAnnounced } from '../nri/told.ts';
import { podSandboxView } from '../nri/views.ts';

export function nodeRequest(state: NodeState, facts: DaemonFacts, intent: Intent): EffectRequest {
  if (intent.kind === 'WaitUntil') return perform(intent);
  if (intent.kind !== 'SynchronizePlugin') return misplaced(intent, 'the node');
  const [plugin] = pluginsOf(state, [intent.plugin]);
  if (plugin === undefined) return bug(`plugin ${intent.plugin} is to be told what there is, but is not there`);
  const now = standing(state);
  return perform({
    kind: 'SynchronizePlugin',
    plugin,
    pods: onDemand(inOrder(now.sandboxes).filter(isPodToBeTold), (sandbox) => podSandboxView(facts, sandbox)),
    containers: onDemand(inOrder(now.containers).filter(isToBeTold), (container) =>
      shown(containerNow(now, facts, container)),
    ),
  });
}

/** What there is in this very turn, as later ones change the maps and none of what is in them. */
const standing = (state: NodeState): NodeState => ({
  ...state,
  sandboxes: new Map(state.sandboxes),
  containers: new Map(state.containers),
  images: new Map(state.images),
});

/** A view is a whole OCI spec: those of thousands are made one by one when they are sent, and not in the turn (C17). */
const onDemand = <T, V>(objects: readonly T[], viewOf: (object: T) => V): Iterable<V> => ({
  *[Symbol.iterator]() {
    for (const object of objects) yield viewOf(object);
  },
});

const inOrder = <T extends { readonly seq: number }>(objects: ReadonlyMap<string, T>): readonly T[] =>
  [...objects.values()].toSorted((a, b) => a.seq - b.seq);

/** Clients may know of it, or others were asked about it; and nobody was told that it is gone. */
const isPodToBeTold = (sandbox: PodSandbox): boolean => {
  const { phase, restore, nri } = sandbox;
  const isKnown = phase !== 'creating' || nri?.hooks.RunPodSandbox !== undefined || restore?.begun === true;
  return isKnown && isPodAnnounced(sandbox) && nri?.hooks.RemovePodSandbox === undefined;
};

/** Announced to the others and not over: from here on the plugin is asked about it like them. */
const isToBeTold = (container: Container): boolean =>
  isAnnounced(container) &&
  container.nri?.hooks.StopContainer === undefined &&
  containerStateOf(container) !== 'CONTAINER_EXITED';

/** One that is still being made has been announced already, as one that will be there. */
const shown = (container: NriContainer): NriContainer =>
  container.state === 'CONTAINER_UNKNOWN' ? { ...container, state: 'CONTAINER_CREATED' } : container;
