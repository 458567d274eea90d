/** What calls about PodSandboxes lead to: refusals, or a goal that process.ts then works towards. */
import type { CallRequest } from '../records.ts';
import { sandboxStream } from '../records.ts';
import { sameJson } from '../json.ts';
import { sandboxName } from '../name-index.ts';
import { hasOwnUsers } from '../oci/user-namespace.ts';
import { validatePodSandboxConfig } from '../oci/validate.ts';
import { containersOf, type NodeState, type OpenCall, type PodSandbox } from '../state.ts';
import { complete, emit, OK, type Turn } from '../turn.ts';
import type { PodSandboxConfig } from '../cri.ts';
import type { Failure } from '../errors.ts';
import type { RuntimeHandler } from '../runtime-handler.ts';
import { findImage } from '../image/names.ts';
import { startFetch } from '../image/process.ts';
import { networkOf, podNetwork, usesHostNetwork } from './network.ts';
import { advancePodSandbox } from './process.ts';
import { givesUserNamespaces, sandboxerOf } from './sandboxer.ts';

type RequestOf<M extends CallRequest['method']> = Extract<CallRequest, { method: M }>;

export function runPodSandbox(turn: Turn, call: OpenCall, request: RequestOf<'RunPodSandbox'>): void {
  const { state } = turn;
  const { facts } = state;
  const { config, newId } = request;
  const refuse = (failure: Failure): void => complete(turn, call, { ok: false, failure });

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
  if (owner !== undefined) return repeat(turn, call, request, owner);

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
  if (sandboxImage !== null && image === undefined) return startFetch(turn, call);

  const network = hostNetwork || confList === null ? null : podNetwork(facts, newId, config, confList);
  emit(turn, sandboxStream(newId), {
    type: 'sandbox.requested',
    body: {
      name,
      config,
      runtimeHandler: request.runtimeHandler,
      handler,
      network,
      imageId: image?.id ?? null,
      // Left out where it is what older journals mean by leaving it out.
      ...(sandboxer === 'pause' ? {} : { sandboxer }),
    },
  });
  advancePodSandbox(turn, newId);
}

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
function repeat(turn: Turn, call: OpenCall, request: RequestOf<'RunPodSandbox'>, owner: PodSandbox): void {
  const same = owner.runtimeHandler === request.runtimeHandler && sameJson(owner.config, request.config);
  if (same && owner.goal === 'run') {
    if (owner.phase === 'creating')
      return emit(turn, call.stream, { type: 'call.joined', body: { target: `sandbox/${owner.id}` } });
    if (owner.phase === 'ready' && containersOf(turn.state, owner.id).length === 0) {
      if (!owner.claimed) emit(turn, sandboxStream(owner.id), { type: 'sandbox.claimed', body: {} });
      return complete(turn, call, { ok: true, response: { id: owner.id } });
    }
  }
  const why = same ? 'is already in use or being taken down' : 'exists with another configuration';
  complete(turn, call, {
    ok: false,
    failure: {
      reason: 'NameTaken',
      message: `The pod sandbox name ${owner.name} is held by ${owner.id}, which ${why}; raise metadata.attempt or remove that sandbox.`,
    },
  });
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
  advancePodSandbox(turn, podSandboxId);
}

function retryWhatIsOwed(turn: Turn, podSandboxId: string): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox !== undefined && sandbox.owedFailure !== null)
    emit(turn, sandboxStream(podSandboxId), { type: 'undo.retried', body: {} });
}
