/**
 * From an open intent to the whole request of its effect, and to the effect that it follows: the room of what it is about
 * knows both. Called in the turn that recorded the intent, or where isMadeOfFollowed, in that which took the end of the other.
 */
import { followedByContainer, isMadeOfFollowed as isContainersMadeOfFollowed } from '../container/follows.ts';
import { containerRequest, readCheckpointRequest } from '../container/requests.ts';
import { bug, type EffectRequest, perform } from '../deciding/effect-request.ts';
import { openEffectsOn } from '../deciding/open-effects.ts';
import { imageRequest, syncImageRequest } from '../image/requests.ts';
import { type Intent, subjectOf } from '../model/records.ts';
import type { NodeState, OpenEffect } from '../model/state.ts';
import { nodeRequest } from '../node/requests.ts';
import { podSandboxRequest } from '../pod-sandbox/requests.ts';
import { followedBy } from '../pod-sandbox/steps.ts';

export function effectRequest(state: NodeState, { stream, intent }: OpenEffect): EffectRequest {
  const { facts } = state;
  const { kind, id } = subjectOf(stream);
  if (facts === null) return bug(`${intent.kind} was requested before the daemon had started`);
  switch (kind) {
    case 'sandbox': {
      const sandbox = state.sandboxes.get(id);
      return sandbox === undefined
        ? bug(`${intent.kind} was requested for a pod sandbox that is gone`)
        : podSandboxRequest(state, facts, sandbox, intent);
    }
    case 'container': {
      const container = state.containers.get(id);
      const sandbox = container === undefined ? undefined : state.sandboxes.get(container.podSandboxId);
      return container === undefined || sandbox === undefined
        ? bug(`${intent.kind} was requested for a container that is gone`)
        : containerRequest(state, facts, sandbox, container, intent);
    }
    case 'node':
      return nodeRequest(state, facts, intent);
    case 'image':
      return intent.kind === 'SyncImage' ? syncImageRequest(state, id) : imageRequest(intent);
    case 'call':
      return forCall(state, intent);
  }
}

/** What a call asks for before there is an object that it could be about; all else is about images. */
function forCall(state: NodeState, intent: Intent): EffectRequest {
  if (intent.kind === 'ReadPodCheckpoint') return perform(intent);
  return intent.kind === 'ReadCheckpoint' ? readCheckpointRequest(state, intent) : imageRequest(intent);
}

/**
 * Which of the effects of the same stream, asked for together or still under way, has to succeed before this one begins,
 * and fails it when it fails; null: this one begins at once.
 */
export function followedEffect(state: NodeState, { stream, intent }: OpenEffect): string | null {
  const { kind, id } = subjectOf(stream);
  const sandbox = kind === 'sandbox' ? state.sandboxes.get(id) : undefined;
  const followed = sandbox === undefined ? followedByContainer(intent.kind) : followedBy(sandbox, intent.kind);
  if (followed === undefined) return null;
  return openEffectsOn(state, stream).find((other) => other.intent.kind === followed)?.id ?? null;
}

/** Its request is made of what the effect that it follows finds out, once that is decided about. */
export const isMadeOfFollowed = ({ stream, intent }: OpenEffect): boolean =>
  subjectOf(stream).kind === 'container' && isContainersMadeOfFollowed(intent.kind);
