/** Runtime handlers as Status announces them, of the node's facts. Pure. */
import type { RuntimeHandler } from '../../domain/model/runtime-handler.ts';
import type { NodeState } from '../../domain/model/state.ts';
import { givesUserNamespaces } from '../../domain/pod-sandbox/sandboxer.ts';
import type * as wire from '../../wire/cri/api.ts';

/** The default handler also goes by the empty name. */
export function runtimeHandlers({ facts }: Pick<NodeState, 'facts'>): readonly wire.RuntimeHandler[] {
  const handlers = facts?.handlers ?? [];
  const featuresOf = (handler: RuntimeHandler) => ({
    recursiveReadOnlyMounts: handler.recursiveReadOnlyMounts ?? false,
    userNamespaces: givesUserNamespaces(handler),
  });
  const byDefault = handlers
    .filter(({ name }) => name === facts?.defaultHandler)
    .map((found) => ({ ...found, name: '' }));
  return [...byDefault, ...handlers].map((handler) => ({ name: handler.name, features: featuresOf(handler) }));
}
