/**
 * The RPCs on containers, commands in them aside that a client streams with: each as a call to the engine or a question
 * to the read model. Decides nothing itself.
 */
import { isExitPending } from '../../../domain/model/container-state.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import type { Container } from '../../../domain/model/state.ts';
import type * as wire from '../../../wire/cri/api.ts';
import { calling, done, reading } from '../calls.ts';
import type { Handlers } from '../context.ts';
import { whenExitsAreKnown } from '../exits.ts';
import { containerState, containerStatus } from '../messages/entries.ts';
import { int32 } from '../messages/numbers.ts';
import { containerConfig, linuxContainerResources, required } from '../messages/from-wire.ts';
import { sealedContainer, sealedFilter } from '../messages/sealed.ts';
import { containerInfo, infoWhen } from '../messages/verbose.ts';
import type { CriParts } from '../parts.ts';
import type { ShownObjects } from '../lookup.ts';
import { streamedList } from '../streamed-lists.ts';

type ContainerMethods =
  | 'createContainer'
  | 'startContainer'
  | 'stopContainer'
  | 'removeContainer'
  | 'listContainers'
  | 'streamContainers'
  | 'containerStatus'
  | 'execSync'
  | 'reopenContainerLog'
  | 'updateContainerResources';

export function containerHandlers(
  parts: CriParts,
  { container }: Pick<ShownObjects, 'container'>,
): Pick<Handlers<typeof wire.RuntimeServiceDefinition>, ContainerMethods> {
  const { view, lists } = parts;

  return {
    createContainer: calling(
      parts,
      'CreateContainer',
      ({ podSandboxId, config }) => ({
        podSandboxId,
        config: sealedContainer(parts.seals, containerConfig(required(config, 'config'), parts.tokenOf)),
      }),
      ({ outcome }) => ({ containerId: outcome.value.id ?? '' }),
    ),
    startContainer: calling(parts, 'StartContainer', ({ containerId }) => ({ containerId }), done),
    stopContainer: calling(
      parts,
      'StopContainer',
      ({ containerId, timeout }) => ({ containerId, timeoutSeconds: timeout }),
      done,
    ),
    removeContainer: calling(parts, 'RemoveContainer', ({ containerId }) => ({ containerId }), done),
    listContainers: reading(
      parts,
      'ListContainers',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.containers(sealedFilter(parts.seals, filter)),
    ),
    streamContainers: streamedList(
      parts,
      'StreamContainers',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.containers(sealedFilter(parts.seals, filter)),
    ),
    containerStatus: reading(
      parts,
      'ContainerStatus',
      ({ containerId }) => containerId,
      ({ containerId, verbose }) => {
        const found = container(containerId);
        if (!isExitPending(found)) return statusReply(parts, found, verbose);
        const { id } = found;
        const isKnown = (): boolean => {
          const now = view.state.containers.get(id);
          return now === undefined || !isExitPending(now);
        };
        return whenExitsAreKnown(view, isKnown, `container ${id}`).then(() =>
          statusReply(parts, container(id), verbose),
        );
      },
    ),

    execSync: calling(
      parts,
      'ExecSync',
      ({ containerId, cmd, timeout }) => ({
        containerId,
        ...parts.audited('ExecSync', containerId, cmd),
        timeoutSeconds: timeout,
      }),
      ({ outcome, attachment }) => ({
        stdout: bufferOf(attachment?.stdout),
        stderr: bufferOf(attachment?.stderr),
        exitCode: int32(outcome.value.exitCode ?? 0),
      }),
    ),
    reopenContainerLog: calling(parts, 'ReopenContainerLog', ({ containerId }) => ({ containerId }), done),
    updateContainerResources: calling(
      parts,
      'UpdateContainerResources',
      ({ containerId, linux, annotations }) => ({
        containerId,
        resources: linuxContainerResources(required(linux, 'linux')),
        ...(Object.keys(annotations).length === 0 ? {} : { annotations: parts.seals.annotations(annotations) }),
      }),
      done,
    ),
  };
}

/** The same memory: output may be long. */
const bufferOf = (bytes: Uint8Array = new Uint8Array()): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function statusReply(
  parts: CriParts,
  container: Container,
  verbose: boolean,
): Uint8Array | wire.ContainerStatusResponse {
  const bytes = parts.lists.containerStatus(container);
  const state = containerState(container);
  if (bytes === null || state === null)
    throw new FailureError('ContainerNotFound', `container_id ${container.id} names no container.`);
  if (!verbose) return bytes;
  return {
    status: containerStatus(parts.view.state, container, state),
    info: infoWhen(verbose, () => containerInfo(parts.view.state, container)),
  };
}
