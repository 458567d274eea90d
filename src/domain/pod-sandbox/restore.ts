/**
 * RestorePod: a new pod with containers that go on where a checkpoint left them. The checkpoint's description is read
 * first, and trusted with nothing but which archive is whose: all else comes from the request's configs. From there on
 * the pod goes the way of every other, and its containers are made before it is READY (restored-containers.ts).
 */
import type { Failure } from '../model/errors.ts';
import { imagesOf } from '../image/mounted.ts';
import { recordedImageFailure, recordedName } from '../image/recorded.ts';
import { sameJson } from '../values/json.ts';
import { checkAbsolutePath, checkNoParentPart } from '../oci/checks.ts';
import { failureIn, shown } from '../oci/refuse.ts';
import { userNamespaceOf } from '../oci/user-namespace.ts';
import { validateContainerConfig } from '../oci/validate.ts';
import { type RequestOf, type EffectEnded, sandboxStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import type { NodeState, OpenCall } from '../model/state.ts';
import { callBehind, complete, emit, requestFor, type Turn } from '../deciding/turn.ts';
import { requestedSandbox } from './decide.ts';
import { advancePodSandbox } from './advance.ts';
import { type Refused, refused, type Result, succeeded } from '../model/result.ts';
import type { DescribedContainer, DescribedPod, RestoredContainer } from '../model/pod-restore.ts';

type RestoreRequest = RequestOf<'RestorePod'>;

const invalid = (message: string): Refused => refused({ reason: 'InvalidField', message });

/** `described` is what the checkpoint says, once it was read on the call's behalf. */
export function restorePod(turn: Turn, call: OpenCall, request: RestoreRequest, described?: DescribedPod): void {
  const { newId, checkpointPath } = request;
  const failure = failureIn(() => {
    checkAbsolutePath('checkpoint_path', checkpointPath);
    checkNoParentPart('checkpoint_path', checkpointPath);
  });
  if (failure !== null) return complete(turn, call, refused(failure));
  const requested = requestedSandbox(turn, call, request);
  if (requested === null) return;
  if (described === undefined) return requestFor(turn, call, { kind: 'ReadPodCheckpoint', checkpointPath });
  const matched = match(turn.state, request, described);
  if (!matched.ok) return complete(turn, call, matched);
  const restore = { checkpointPath, containers: matched.value };
  emit(turn, sandboxStream(newId), { type: 'sandbox.requested', body: { ...requested, restore } });
  advancePodSandbox(turn, newId);
}

export function afterReadPodCheckpoint(
  turn: Turn,
  { result, failure }: Extract<EffectEnded, { kind: 'ReadPodCheckpoint' }>,
): void {
  const call = callBehind(turn);
  if (call?.request.method !== 'RestorePod') return;
  if (result !== undefined) return restorePod(turn, call, call.request, result.pod);
  if (failure !== undefined) complete(turn, call, refused(failure));
}

/** Every container of the checkpoint with its config, in the configs' order. */
function match(
  state: NodeState,
  request: RestoreRequest,
  described: DescribedPod,
): Result<readonly RestoredContainer[]> {
  const { checkpointPath, config, containerConfigs, newContainerIds } = request;
  if (!sameJson(userNamespaceOf(config), described.users))
    return invalid(
      `linux.security_context.namespace_options.userns_options maps other ids than those of the pod in ${checkpointPath}: give the pod the same.`,
    );
  const names = containerConfigs.map(({ metadata }) => metadata?.name ?? '');
  const lacking = described.containers.find(({ name }) => !names.includes(name));
  if (lacking !== undefined)
    return invalid(
      `container_configs has no ${shown(lacking.name)}, which is in ${checkpointPath}: give its config too.`,
    );
  const containers: RestoredContainer[] = [];
  for (const [index, containerConfig] of containerConfigs.entries()) {
    const name = names[index] ?? '';
    if (names.indexOf(name) !== index) return invalid(`container_configs has ${shown(name)} more than once.`);
    const container = described.containers.find((one) => one.name === name);
    if (container === undefined)
      return invalid(`container_configs has ${shown(name)}, which is not in ${checkpointPath}: leave it out.`);
    const wrong = validateContainerConfig(containerConfig, config, rulesOf(state));
    if (wrong !== null) return refused({ ...wrong, message: `container_configs ${shown(name)}: ${wrong.message}` });
    const images = imagesOf(state, containerConfig);
    if (!images.ok) return images;
    const other = imageFailure(state, container, images.value.imageId);
    if (other !== null) return refused(other);
    containers.push({
      containerId: newContainerIds[index] ?? '',
      config: containerConfig,
      ...images.value,
      checkpointArchive: `${checkpointPath}/${container.archive}`,
    });
  }
  return succeeded(containers);
}

/** Its memory maps files of the image that it was made from: with those of another one it would go on into nowhere. */
function imageFailure(state: NodeState, described: DescribedContainer, imageId: string): Failure | null {
  if (described.imageId === imageId) return null;
  const name = shown(described.name);
  const message = `container_configs ${name}: image.image is ${imageId}, but the container was checkpointed with ${recordedName(described)}: name that.`;
  return recordedImageFailure(state, `Container ${name}`, described) ?? { reason: 'InvalidField', message };
}
