/** CRI's RuntimeService: each RPC as a call to the engine or a question to the read model. Decides nothing itself. */
import { FailureError } from '../../domain/errors.ts';
import { refuseField, shown } from '../../domain/oci/refuse.ts';
import { containerStateOf } from '../../domain/container/state.ts';
import type { Container, PodSandbox } from '../../domain/state.ts';
import * as wire from '../wire/cri/api.ts';
import type { Handlers } from './context.ts';
import { containersIn, containerState, containerStatus, containerStatuses, podSandboxStatus } from './entries.ts';
import { isUnsure, whenExitsAreKnown } from './exits.ts';
import { containerConfig, linuxContainerResources, podSandboxConfig } from './from-wire.ts';
import { type CriParts, everything, find, reading, take } from './parts.ts';
import { statsHandlers } from './stats-handlers.ts';
import { streamedList } from './streamed-lists.ts';
import { streamingHandlers } from './streaming.ts';
import { containerInfo, hasOwnSandbox, infoWhen, podSandboxInfo, statusInfo } from './verbose.ts';

const API_VERSION = '0.1.0';
const RUNTIME_API_VERSION = 'v1';

export function runtimeService(parts: CriParts): Handlers<typeof wire.RuntimeServiceDefinition> {
  const { view, lists } = parts;

  const container = (id: string): Container => {
    const found = find('container_id', view.state.containers, id);
    if (found === undefined || containerStateOf(found) === null)
      throw new FailureError('ContainerNotFound', `container_id ${shown(id)} names no container.`);
    return found;
  };
  const sandbox = (id: string): PodSandbox => {
    const found = find('pod_sandbox_id', view.state.sandboxes, id);
    if (found === undefined || found.phase === 'creating')
      throw new FailureError('PodSandboxNotFound', `pod_sandbox_id ${shown(id)} names no pod sandbox.`);
    return found;
  };

  return {
    version: reading(parts, 'Version', everything, () => ({
      version: API_VERSION,
      runtimeName: 'scribe',
      runtimeVersion: parts.version,
      runtimeApiVersion: RUNTIME_API_VERSION,
    })),

    async runPodSandbox({ config, runtimeHandler }, context) {
      const reply = await take(
        parts,
        'RunPodSandbox',
        () => ({ config: podSandboxConfig(required(config, 'config')), runtimeHandler }),
        context,
      );
      return { podSandboxId: reply.outcome.response.id ?? '' };
    },
    async stopPodSandbox({ podSandboxId }, context) {
      await take(parts, 'StopPodSandbox', () => ({ podSandboxId }), context);
      return {};
    },
    async removePodSandbox({ podSandboxId }, context) {
      await take(parts, 'RemovePodSandbox', () => ({ podSandboxId }), context);
      return {};
    },
    podSandboxStatus: reading(
      parts,
      'PodSandboxStatus',
      ({ podSandboxId }) => podSandboxId,
      ({ podSandboxId, verbose }) => {
        const { id } = sandbox(podSandboxId);
        const isKnown = (): boolean => !containersIn(view.state, id).some(isUnsure);
        const answer = (details: Readonly<Record<string, unknown>> = {}): wire.PodSandboxStatusResponse => {
          const found = sandbox(id);
          return {
            status: podSandboxStatus(found),
            info: infoWhen(verbose, () => ({ ...podSandboxInfo(found), ...details })),
            containersStatuses: containerStatuses(view.state, containersIn(view.state, id)),
            timestamp: String(parts.nowNs()),
          };
        };
        const whole = (): wire.PodSandboxStatusResponse | Promise<wire.PodSandboxStatusResponse> =>
          verbose && hasOwnSandbox(sandbox(id))
            ? parts.sandboxDetails(id).then((shimSandbox) => answer({ shimSandbox }))
            : answer();
        return isKnown() ? whole() : whenExitsAreKnown(view, isKnown, `a container of pod ${id}`).then(whole);
      },
    ),
    listPodSandbox: reading(
      parts,
      'ListPodSandbox',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.podSandboxes(filter),
    ),
    streamPodSandboxes: streamedList(
      parts,
      'StreamPodSandboxes',
      ({ filter }) => filter?.id ?? '',
      ({ filter }) => lists.podSandboxes(filter),
    ),

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
        if (!isUnsure(found)) return statusReply(parts, found, verbose);
        const { id } = found;
        const isKnown = (): boolean => view.state.containers.get(id)?.exitPending !== true;
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
        stdout: Buffer.from(attachment?.stdout ?? []),
        stderr: Buffer.from(attachment?.stderr ?? []),
        exitCode: outcome.response.exitCode ?? 0,
      };
    },
    ...streamingHandlers(parts),
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
    async checkpointContainer({ containerId, location, timeout }, context) {
      await take(parts, 'CheckpointContainer', () => ({ containerId, location, timeoutSeconds: timeout }), context);
      return {};
    },
    async checkpointPod({ podSandboxId, outputPath, containerIds, options }, context) {
      const fields = (): { podSandboxId: string; outputPath: string; containerIds: readonly string[] } => {
        for (const name of Object.keys(options))
          refuseField('options', `has ${shown(name)}, which scribe does not know`);
        return { podSandboxId, outputPath, containerIds };
      };
      await take(parts, 'CheckpointPod', fields, context);
      return {};
    },
    async updatePodSandboxResources({ podSandboxId, overhead, resources }, context) {
      await take(
        parts,
        'UpdatePodSandboxResources',
        () => ({
          podSandboxId,
          ...(overhead === undefined ? {} : { overhead: linuxContainerResources(overhead) }),
          ...(resources === undefined ? {} : { resources: linuxContainerResources(resources) }),
        }),
        context,
      );
      return {};
    },
    async updateRuntimeConfig({ runtimeConfig }, context) {
      await take(
        parts,
        'UpdateRuntimeConfig',
        () => ({ podCidr: runtimeConfig?.networkConfig?.podCidr ?? '' }),
        context,
      );
      return {};
    },

    ...statsHandlers(parts, { container, sandbox }),

    status: reading(parts, 'Status', everything, ({ verbose }) => {
      const { problem, confList } = view.state.network;
      const networkReady = confList !== null;
      return {
        status: {
          conditions: [
            { type: 'RuntimeReady', status: true, reason: '', message: '' },
            {
              type: 'NetworkReady',
              status: networkReady,
              reason: networkReady ? '' : 'NetworkPluginNotReady',
              message: networkReady ? '' : (problem ?? 'there is no network configuration'),
            },
          ],
        },
        info: verbose ? statusInfo(parts) : {},
        runtimeHandlers: [...parts.runtimeHandlers()],
        features: { supplementalGroupsPolicy: true, userNamespacesHostNetwork: false, mountOptions: true },
      };
    }),
    runtimeConfig: reading(parts, 'RuntimeConfig', everything, () => ({
      linux: {
        cgroupDriver:
          view.state.facts?.settings.cgroupDriver === 'systemd'
            ? wire.CgroupDriver.SYSTEMD
            : wire.CgroupDriver.CGROUPFS,
      },
    })),
    async getContainerEvents(request, context, send) {
      const subscribe = (): Promise<void> => parts.events.subscribe(send, context.signal());
      await reading(parts, 'GetContainerEvents', everything, subscribe)(request, context);
    },
  };
}

function required<T>(value: T | undefined, field: string): T {
  if (value === undefined)
    throw new FailureError('InvalidField', `${field} is missing; a request without it says nothing.`);
  return value;
}

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
