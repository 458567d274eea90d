/** What NRI plugins own in containers that run, plugin by plugin, as their adjustments were recorded. For `scribe nri`. */
import { containerStateOf } from '../domain/model/container-state.ts';
import type { FieldOwners } from '../domain/model/nri.ts';
import type { Container, NodeState } from '../domain/model/state.ts';
import { isMarked } from '../domain/nri/marks.ts';

export interface NriOwnedIn {
  readonly container: Container;
  /** By the protocol's names, with a key where there is one: "Env NAME". */
  readonly fields: readonly string[];
}

/** Several plugins may have added to one field. Who only took something away owns nothing. */
const ownersIn = (owners: string): readonly string[] => (isMarked(owners) ? [] : owners.split(','));

function fieldsByPlugin({ simple, compound }: FieldOwners): ReadonlyMap<string, readonly string[]> {
  const all = [
    ...Object.entries(simple).map(([field, owners]) => ({ field, owners })),
    ...Object.entries(compound).flatMap(([field, keys]) =>
      Object.entries(keys).map(([key, owners]) => ({ field: `${field} ${key}`, owners })),
    ),
  ];
  const each = all.flatMap(({ field, owners }) => ownersIn(owners).map((plugin) => ({ field, plugin })));
  const groups = Map.groupBy(each, ({ plugin }) => plugin);
  return new Map([...groups].map(([plugin, items]) => [plugin, items.map(({ field }) => field)]));
}

/** By "NN-name", containers in the order in which they were made. */
export function nriOwned({ containers }: Pick<NodeState, 'containers'>): ReadonlyMap<string, readonly NriOwnedIn[]> {
  const owned = new Map<string, NriOwnedIn[]>();
  for (const container of containers.values()) {
    const owners = container.nri?.adjusted?.owners;
    if (owners === undefined || containerStateOf(container) !== 'CONTAINER_RUNNING') continue;
    for (const [plugin, fields] of fieldsByPlugin(owners))
      owned.set(plugin, [...(owned.get(plugin) ?? []), { container, fields }]);
  }
  return owned;
}
