/** What calls about PodSandboxes lead to: refusals, or a goal that advance.ts then works towards. */
import { isClaimed } from '../model/container-state.ts';
import { type BodyOf, type RequestOf, containerStream, sandboxStream } from '../model/records.ts';
import { sameJson } from '../values/json.ts';
import { sandboxName } from '../model/names.ts';
import { levelOf, ownLevelOf, podLabels } from '../oci/selinux.ts';
import { hasOwnUsers } from '../oci/user-namespace.ts';
import { validatePodSandboxConfig } from '../oci/validate.ts';
import { containersOf, type NodeState, type OpenCall, type PodSandbox } from '../model/state.ts';
import { complete, emit, join, OK, type Turn, wake } from '../deciding/turn.ts';
import type { PodSandboxConfig } from '../model/cri.ts';
import type { Failure } from '../model/errors.ts';
import { leavesCreationsAlone } from '../model/journal-doubt.ts';
import { type RuntimeHandler, startsMachines } from '../model/runtime-handler.ts';
import { refused, succeeded } from '../model/result.ts';
import { findImage } from '../image/names.ts';
import { startFetch } from '../image/advance.ts';
import { networkOf, podNetwork, usesHostNetwork } from './network.ts';
import { advancePodSandbox } from './advance.ts';
import { createdResponse, isRestoredWith } from './restored-containers.ts';
import { givesUserNamespaces, sandboxerOf } from './sandboxer.ts';

type Creation = RequestOf<'RunPodSandbox' | 'RestorePod'>;
type Requested = BodyOf<'sandbox.requested'>;

export function runPodSandbox(turn: Turn, call: OpenCall, request: RequestOf<'RunPodSandbox'>): void {
  const requested = requestedSandbox(turn, call, request);
  if (requested === null) return;
  emit(turn, sandboxStream(request.newId), { type: 'sandbox.requested', body: requested });
  advancePodSandbox(turn, request.newId);
}

/** What is to be recorded of a new pod; null when the call is answered, or waits for something. */
export function requestedSandbox(turn: Turn, call: OpenCall, request: Creation): Requested | null {
  const { state } = turn;
  const { facts } = state;
  const { config, newId } = request;
  const refuse = (failure: Failure): null => {
    complete(turn, call, refused(failure));
    return null;
  };

  if (facts === null)
    return refuse({ reason: 'NotServing', message: 'The daemon has not finished starting; try again.' });
  const invalid = validatePodSandboxConfig(config, facts);
  if (invalid !== null) return refuse(invalid);
  const handler = findHandler(state, request.runtimeHandler);
  if (handler === undefined)
    return refuse({
      reason: 'UnknownRuntimeHandler',
      message: `runtime_handler "${request.runtimeHandler}" is not configured; known are ${facts.handlers.map(({ name }) => `"${name}"`).join(', ')}.`,
    });

  const lacking = withoutUserNamespaces(handler, config);
  if (lacking !== null) return refuse(lacking);

  const name = sandboxName(config.metadata ?? {});
  const owner = state.sandboxes.get(state.names.get(name) ?? '');
  if (owner !== undefined) {
    repeat(turn, call, request, owner);
    return null;
  }

  const { confList, problem } = networkOf(state, handler);
  const hostNetwork = usesHostNetwork(config);
  if (!hostNetwork && confList === null)
    return refuse({
      reason: 'NetworkNotReady',
      message: `The pod needs a CNI network and there is none: ${problem ?? 'no configuration'}.`,
    });

  const sandboxer = sandboxerOf(handler, config);
  // The carried program needs nothing of its root file system to belong to the pod's own users.
  const sandboxImage = sandboxer === 'pause' && !hasOwnUsers(config) ? facts.sandboxImage : null;
  const image = sandboxImage === null ? undefined : findImage(state, sandboxImage);
  // The sandbox image is pulled on the call's behalf, and the call is decided again when it is there.
  if (sandboxImage !== null && image === undefined) {
    startFetch(turn, call);
    return null;
  }

  const network = hostNetwork || confList === null ? null : podNetwork(facts, newId, config, confList);
  const selinux = facts.selinux && podLabels(facts.selinux, newId, config, takenLevels(state), startsMachines(handler));
  return {
    name,
    config,
    runtimeHandler: request.runtimeHandler,
    handler,
    network,
    imageId: image?.id ?? null,
    // Left out where it is what older journals mean by leaving it out.
    ...(sandboxer === 'pause' ? {} : { sandboxer }),
    ...(selinux === undefined ? {} : { selinux }),
  };
}

/** Levels of pods and containers that are there: what is removed gives its own back. */
const takenLevels = ({ sandboxes, containers }: NodeState): ReadonlySet<string> =>
  new Set([
    ...[...sandboxes.values()].flatMap(({ selinux }) => (selinux === undefined ? [] : [levelOf(selinux)])),
    ...[...containers.values()].map(({ config }) => ownLevelOf(config)),
  ]);

function withoutUserNamespaces(handler: RuntimeHandler, config: PodSandboxConfig): Failure | null {
  if (givesUserNamespaces(handler) || !hasOwnUsers(config)) return null;
  return {
    reason: 'HostLacks',
    message: `linux.security_context.namespace_options.userns_options asks for a user namespace, which runtime handler "${handler.name}" can not give: that takes an OCI runtime whose features list it, Linux 6.3, and what 'scribe doctor' says of user namespaces; or set mode NODE (hostUsers: true).`,
  };
}

const findHandler = (state: NodeState, name: string): RuntimeHandler | undefined =>
  state.facts?.handlers.find((handler) => handler.name === (name === '' ? state.facts?.defaultHandler : name));

/** The same name again (C5): the same configuration joins or gets the finished, untouched pod; anything else is refused. */
function repeat(turn: Turn, call: OpenCall, request: Creation, owner: PodSandbox): void {
  const same =
    owner.runtimeHandler === request.runtimeHandler &&
    sameJson(owner.config, request.config) &&
    sameJson(askedRestore(owner.restore), restoreOf(request));
  if (same && owner.goal === 'run') {
    if (owner.phase === 'creating') return join(turn, call, sandboxStream(owner.id));
    if (owner.phase === 'ready' && isUntouched(turn.state, owner)) {
      if (!call.detached) claim(turn, owner);
      return complete(turn, call, succeeded(createdResponse(owner)));
    }
  }
  const why = same ? 'is already in use or being taken down' : 'exists with another configuration';
  complete(
    turn,
    call,
    refused({
      reason: 'NameTaken',
      message: `The pod sandbox name ${owner.name} is held by ${owner.id}, which ${why}; raise metadata.attempt or remove that sandbox.`,
    }),
  );
}

/** The pod and what came with it have a client that knows of them. */
function claim(turn: Turn, { id: podSandboxId, claimed }: PodSandbox): void {
  if (!claimed) emit(turn, sandboxStream(podSandboxId), { type: 'sandbox.claimed', body: {} });
  for (const container of containersOf(turn.state, podSandboxId))
    if (!isClaimed(container)) emit(turn, containerStream(container.id), { type: 'container.claimed', body: {} });
}

/** The part of a creation that says what it restores, for a comparison of two. */
const restoreOf = (request: Creation): unknown =>
  request.method === 'RunPodSandbox'
    ? null
    : { checkpointPath: request.checkpointPath, containerConfigs: request.containerConfigs };

const askedRestore = (restore: PodSandbox['restore']): unknown =>
  restore === undefined
    ? null
    : { checkpointPath: restore.checkpointPath, containerConfigs: restore.containers.map(({ config }) => config) };

/** It has no containers but those that it was restored with, and they are as they were made. */
function isUntouched(state: NodeState, { id, restore }: PodSandbox): boolean {
  const containers = containersOf(state, id);
  return (
    containers.length === (restore?.containers.length ?? 0) &&
    containers.every(
      (container) =>
        isRestoredWith(restore, container.id) && container.goal === 'run' && container.phase.kind === 'created',
    )
  );
}

export function stopPodSandbox(turn: Turn, call: OpenCall, { podSandboxId }: RequestOf<'StopPodSandbox'>): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined || (sandbox.stopped && sandbox.goal === 'stop')) return complete(turn, call, OK);
  if (sandbox.goal === 'run') emit(turn, sandboxStream(sandbox.id), { type: 'sandbox.stopping', body: {} });
  retryWhatIsOwed(turn, podSandboxId);
  advancePodSandbox(turn, podSandboxId);
}

export function removePodSandbox(turn: Turn, call: OpenCall, { podSandboxId }: RequestOf<'RemovePodSandbox'>): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined) return complete(turn, call, OK);
  if (sandbox.goal === 'run' || sandbox.goal === 'stop')
    emit(turn, sandboxStream(sandbox.id), { type: 'sandbox.removing', body: {} });
  retryWhatIsOwed(turn, podSandboxId);
  takeUpUndoing(turn, podSandboxId);
  advancePodSandbox(turn, podSandboxId);
}

function retryWhatIsOwed(turn: Turn, podSandboxId: string): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox !== undefined && sandbox.owedFailure !== null)
    emit(turn, sandboxStream(podSandboxId), { type: 'undo.retried', body: {} });
}

/** What was being undone is left alone while the journal is doubted, until its pod is to be removed, which waits for it. */
function takeUpUndoing(turn: Turn, podSandboxId: string): void {
  if (!leavesCreationsAlone(turn.state)) return;
  for (const { id, goal, owedFailure } of containersOf(turn.state, podSandboxId)) {
    if (goal !== 'undo') continue;
    const stream = containerStream(id);
    if (owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
    wake(turn, stream);
  }
}
