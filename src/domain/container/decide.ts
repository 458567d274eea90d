/** What calls about containers lead to: refusals, or a goal that advance.ts then works towards. */
import type { Failure } from '../model/errors.ts';
import type { ContainerConfig } from '../model/cri.ts';
import { rulesOf } from '../model/rules.ts';
import { imagesOf } from '../image/mounted.ts';
import { recordedImageFailure } from '../image/recorded.ts';
import { checkAbsolutePath, checkNoParentPart } from '../oci/checks.ts';
import { failureIn, shown } from '../oci/refuse.ts';
import { hasOwnUsers } from '../oci/user-namespace.ts';
import type { DescribedImage } from '../model/pod-restore.ts';
import { containerName } from '../model/names.ts';
import { stopSignalOf } from '../oci/signals.ts';
import { validateContainerConfig } from '../oci/validate.ts';
import { prepareShim } from '../deciding/launch.ts';
import { containerStream, type Eviction, type RequestOf } from '../model/records.ts';
import type { Container, NodeState, OpenCall, PodSandbox } from '../model/state.ts';
import { complete, emit, join, OK, request as requestEffects, requestFor, type Turn } from '../deciding/turn.ts';
import { advanceContainer, askForStop } from './advance.ts';
import { isSameRequest } from './same-request.ts';
import {
  containerStateOf,
  evictedUnstarted,
  isCreated,
  isRunning,
  isStarting,
  notFound,
} from '../model/container-state.ts';
import { refused, succeeded } from '../model/result.ts';

const NS_PER_S = 1_000_000_000n;

/** `described` is what the archive says that the config names for an image, once it was read on the call's behalf. */
export function createContainer(
  turn: Turn,
  call: OpenCall,
  request: RequestOf<'CreateContainer'>,
  described?: DescribedImage,
): void {
  const { state } = turn;
  const { config, newId, podSandboxId } = request;
  const refuse = (failure: Failure): void => complete(turn, call, refused(failure));

  const { facts } = state;
  if (facts === null)
    return refuse({ reason: 'NotServing', message: 'The daemon has not finished starting; try again.' });
  const sandbox = state.sandboxes.get(podSandboxId);
  if (sandbox === undefined)
    return refuse({ reason: 'PodSandboxNotFound', message: `pod_sandbox_id ${podSandboxId} names no pod sandbox.` });
  const invalid = validateContainerConfig(config, sandbox.config, rulesOf(state));
  if (invalid !== null) return refuse(invalid);

  const name = containerName(config.metadata ?? {}, podSandboxId);
  const owner = state.containers.get(state.names.get(name) ?? '');
  // What a pod that is being restored is made with is shown with it, or never: nobody but who restores it can wait for that.
  const isOfNewPod = sandbox.phase === 'creating' && rulesOf(state) >= 11;
  if (owner !== undefined && !isOfNewPod) return repeat(turn, call, request, owner);

  if (sandbox.goal !== 'run' || sandbox.phase !== 'ready')
    return refuse({
      reason: 'WrongState',
      message: `Pod sandbox ${podSandboxId} is not READY; containers can only be created in a READY sandbox.`,
    });
  const location = checkpointArchiveOf(config);
  if (location !== null) {
    const failure = archiveFailure(state, sandbox, location, described);
    if (failure !== null) return refuse(failure);
    if (described === undefined) return requestFor(turn, call, { kind: 'ReadCheckpoint', location });
  }
  const images = imagesOf(state, described === undefined ? config : { ...config, image: { image: described.imageId } });
  if (!images.ok) return refuse(images.failure);
  emit(turn, containerStream(newId), {
    type: 'container.requested',
    body: {
      name,
      podSandboxId,
      config,
      ...images.value,
      ...(location === null ? {} : { checkpointArchive: location }),
    },
  });
  prepareShim(turn, sandbox);
  advanceContainer(turn, newId);
}

/** The path that stands where an image should, as kubelet and others hand on a checkpoint; null for an image. */
const checkpointArchiveOf = ({ image }: ContainerConfig): string | null =>
  image?.image?.startsWith('/') === true ? image.image : null;

function archiveFailure(
  state: NodeState,
  { config }: PodSandbox,
  location: string,
  described: DescribedImage | undefined,
): Failure | null {
  const invalid = failureIn(() => {
    checkAbsolutePath('image.image', location);
    checkNoParentPart('image.image', location);
  });
  if (invalid !== null) return invalid;
  // Whose files are in it, nobody has written down.
  if (hasOwnUsers(config)) {
    const message = `image.image ${shown(location)} is a checkpoint, which a container of a pod with users of its own can not be made from: use RestorePod.`;
    return { reason: 'InvalidField', message };
  }
  return described === undefined ? null : recordedImageFailure(state, `The container in ${location}`, described);
}

/** The same name again (C5). */
function repeat(turn: Turn, call: OpenCall, request: RequestOf<'CreateContainer'>, owner: Container): void {
  const same = isSameRequest(turn.state, owner.config, request.config);
  if (same && owner.goal === 'run' && owner.phase.kind === 'creating')
    return join(turn, call, containerStream(owner.id));
  if (same && owner.goal === 'run' && owner.phase.kind === 'created') {
    if (!owner.phase.claimed && !call.detached)
      emit(turn, containerStream(owner.id), { type: 'container.claimed', body: {} });
    return complete(turn, call, succeeded({ id: owner.id }));
  }
  const why = same ? 'was started already or is being removed' : 'exists with another configuration';
  complete(
    turn,
    call,
    refused({
      reason: 'NameTaken',
      message: `The container name ${owner.name} is held by ${owner.id}, which ${why}; raise metadata.attempt or remove that container.`,
    }),
  );
}

export function startContainer(turn: Turn, call: OpenCall, { containerId }: RequestOf<'StartContainer'>): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || !isCreated(container)) return complete(turn, call, refused(notFound(containerId)));
  const sandbox = turn.state.sandboxes.get(container.podSandboxId);
  const state = containerStateOf(container);
  // A second StartContainer while the first is under way is the same call again and gets the same answer.
  if (isStarting(container) && container.goal === 'run') return;
  if (state !== 'CONTAINER_CREATED' || container.goal !== 'run')
    return complete(
      turn,
      call,
      refused({
        reason: 'WrongState',
        message: `Container ${containerId} is ${state ?? 'being removed'}; only a CREATED one can be started.`,
      }),
    );
  if (sandbox === undefined || sandbox.goal !== 'run' || sandbox.phase !== 'ready')
    return complete(
      turn,
      call,
      refused({
        reason: 'WrongState',
        message: `Pod sandbox ${container.podSandboxId} of container ${containerId} is not READY.`,
      }),
    );
  const evicted = evictedUnstarted(container);
  if (evicted !== null)
    return complete(
      turn,
      call,
      refused({
        reason: 'PluginRefused',
        message: `Container ${containerId} can not be started: NRI plugin "${evicted.plugin}" evicted it before it was started (${evicted.reason}).`,
      }),
    );
  emit(turn, containerStream(containerId), { type: 'container.starting', body: {} });
  advanceContainer(turn, containerId);
}

export function stopContainer(
  turn: Turn,
  call: OpenCall,
  { containerId, timeoutSeconds, evicted }: RequestOf<'StopContainer'>,
): void {
  const container = turn.state.containers.get(containerId);
  if (container !== undefined && evicted !== undefined) evictUnstarted(turn, container, evicted);
  if (container === undefined || (!isRunning(container) && !isStarting(container))) return complete(turn, call, OK);
  const graceNs = BigInt(timeoutSeconds) * NS_PER_S;
  const killAtNs = graceNs <= 0n ? null : String(turn.input.atNs + graceNs);
  const signal = stopSignalOf(container.config, container.imageConfig);
  askForStop(turn, container, signal, killAtNs, rulesOf(turn.state) < 4 ? undefined : evicted);
  advanceContainer(turn, containerId);
}

/** Nothing of it runs that could be stopped: it is kept from being started. */
function evictUnstarted(turn: Turn, { id, phase, config, imageConfig }: Container, evicted: Eviction): void {
  if (rulesOf(turn.state) < 11 || (phase.kind !== 'creating' && phase.kind !== 'created')) return;
  // The first reason stays, as with one that runs.
  if (phase.evicted !== undefined) return;
  const body = { signal: stopSignalOf(config, imageConfig), killAtNs: null, evicted };
  emit(turn, containerStream(id), { type: 'container.stopping', body });
  advanceContainer(turn, id);
}

export function removeContainer(turn: Turn, call: OpenCall, { containerId }: RequestOf<'RemoveContainer'>): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined) return complete(turn, call, OK);
  const stream = containerStream(containerId);
  if (container.goal === 'run') emit(turn, stream, { type: 'container.removing', body: {} });
  if (container.owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
  advanceContainer(turn, containerId);
}

export function reopenContainerLog(turn: Turn, call: OpenCall, { containerId }: RequestOf<'ReopenContainerLog'>): void {
  const container = turn.state.containers.get(containerId);
  if (container === undefined || !isCreated(container)) return complete(turn, call, refused(notFound(containerId)));
  if (containerStateOf(container) !== 'CONTAINER_RUNNING')
    return complete(
      turn,
      call,
      refused({ reason: 'WrongState', message: `Container ${containerId} is not running; its log is not open.` }),
    );
  requestEffects(turn, containerStream(containerId), { kind: 'ReopenLog' });
}
