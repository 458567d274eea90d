/**
 * The RPCs on containers, commands in them aside that a client streams with: each as a call to the engine or a question
 * to the read model. Decides nothing itself.
 */
import { isExitPending } from '../../../domain/model/container-state.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import type { Container } from '../../../domain/model/state.ts';
import type * as wire from '../../../wire/cri/api.ts';
import { reading, take } from '../calls.ts';
import type { Handlers } from '../context.ts';
import { whenExitsAreKnown } from '../exits.ts';
import { containerState, containerStatus } from '../messages/entries.ts';
import { int32 } from '../messages/numbers.ts';
import { containerConfig, linuxContainerResources, required } from '../messages/from-wire.ts';
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
    async createContainer({ podSandboxId, config }, context) {
      const reply = await take(
        parts,
        'CreateContainer',
        () => ({ podSandboxId, config: containerConfig(required(config, 'config'), parts.tokenOf) }),
        context,
      );
      return { containerId: reply.outcome.response.id ?? '' };
    },
    async startContainer({ containerId }, context) {
      await take(parts, 'StartContainer', () => ({ containerId }), context);
      return {};
    },
    async stopContainer({ containerId, timeout }, context) {
      await take(parts, 'StopContainer', () => ({ containerId, timeoutSeconds: timeout }), context);
      return {};
    },
    async removeContainer({ containerId }, context) {
      await take(parts, 'RemoveContainer', () => ({ containerId }), context);
      return {};
    },
    listContainers: reading(
      parts,
      'ListContainers',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.containers(filter),
    ),
    streamContainers: streamedList(
      parts,
      'StreamContainers',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.containers(filter),
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

    async execSync({ containerId, cmd, timeout }, context) {
      const { outcome, attachment } = await take(
        parts,
        'ExecSync',
        () => ({ containerId, cmd, timeoutSeconds: timeout }),
        context,
      );
      return {
        stdout: bufferOf(attachment?.stdout),
        stderr: bufferOf(attachment?.stderr),
        exitCode: int32(outcome.response.exitCode ?? 0),
      };
    },
    async reopenContainerLog({ containerId }, context) {
      await take(parts, 'ReopenContainerLog', () => ({ containerId }), context);
      return {};
    },
    async updateContainerResources({ containerId, linux, annotations }, context) {
      await take(
        parts,
        'UpdateContainerResources',
        () => ({
          containerId,
          resources: linuxContainerResources(required(linux, 'linux')),
          ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
        }),
        context,
      );
      return {};
    },
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
    info: infoWhen(verbose, () => containerInfo(container)),
  };
}
