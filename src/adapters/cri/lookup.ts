/**
 * Which object of the read model a request means: an id or its beginning, as long as it can mean only one, and only what
 * CRI shows. Reads and throws; remembers nothing.
 */
import { idFailure, wholeId } from '../../domain/call/ids.ts';
import { containerStateOf } from '../../domain/model/container-state.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { shown } from '../../domain/oci/refuse.ts';
import type { Container, PodSandbox } from '../../domain/model/state.ts';
import type { ReadModel } from '../../engine/ports.ts';

/** The object an id or its beginning names; throws when it could name several. `field` is CRI's name of the id. */
export function find<T>(field: string, map: ReadonlyMap<string, T>, id: string): T | undefined {
  const exact = map.get(id);
  if (exact !== undefined) return exact;
  const failure = idFailure(field, map, id);
  if (failure !== null) throw new FailureError(failure.reason, failure.message);
  return map.get(wholeId(map, id));
}

export interface ShownObjects {
  /** What an id or its beginning names; both throw when CRI shows no such object. */
  readonly container: (id: string) => Container;
  readonly sandbox: (id: string) => PodSandbox;
}

export const shownObjects = ({ state }: Pick<ReadModel, 'state'>): ShownObjects => ({
  container(id) {
    const found = find('container_id', state.containers, id);
    if (found === undefined || containerStateOf(found) === null)
      throw new FailureError('ContainerNotFound', `container_id ${shown(id)} names no container.`);
    return found;
  },
  sandbox(id) {
    const found = find('pod_sandbox_id', state.sandboxes, id);
    if (found === undefined || found.phase === 'creating')
      throw new FailureError('PodSandboxNotFound', `pod_sandbox_id ${shown(id)} names no pod sandbox.`);
    return found;
  },
});
