/**
 * From an open intent to the whole request an adapter can perform without knowing any state. A function of the state
 * alone, so that a replay gives the same requests. Called in the turn that recorded the intent.
 */
import { resourcesOf } from '../model/container-state.ts';
import type { Effect, EffectOf } from '../model/effects.ts';
import type { CheckpointedTask, TaskCheckpoint } from '../model/effects/checkpoint.ts';
import { containerLog } from '../container/log.ts';
import type { Failure } from '../model/errors.ts';
import { checkpointDigests } from '../container/checkpoint-digests.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { etcFiles } from '../oci/etc-files.ts';
import { containerQuestions } from '../oci/container-spec.ts';
import { hasHostIpc, namespacePins } from '../oci/namespaces.ts';
import { failureIn } from '../oci/refuse.ts';
import { ociResources, oomScoreAdj, undoingResources } from '../oci/resources.ts';
import { seccompFileOf, seccompProfileOf } from '../oci/seccomp.ts';
import { pathsToRelabel, taskLabels } from '../oci/selinux.ts';
import { hasOwnUsers, userNamespaceOf } from '../oci/user-namespace.ts';
import { bundlePath, checkpointDir, containerDir, netnsPath, restoreDir, sandboxDir, shmPath } from '../model/paths.ts';
import { type ContainerUpdate, type Intent, subjectOf } from '../model/records.ts';
import { createPauseTask, createTask, startPauseTask, startTask, usersOf } from './launch-requests.ts';
import { containerSpecOf, imageMountsOf, pinnedSysctls, sandboxSpecOf, volumesOf } from '../oci/specs.ts';
import { type Container, containersOf, type NodeState, type OpenEffect, type PodSandbox } from '../model/state.ts';

export type EffectRequest =
  | { readonly ok: true; readonly effect: Effect }
  | { readonly ok: false; readonly failure: Failure };

/** /dev/shm of a pod, as Docker and containerd size it. */
const SHM_SIZE_BYTES = 64 * 1024 * 1024;

/** For a sandbox whose containers are gone already; what takes longer ends with its shim. */
const STOP_SANDBOX_SECONDS = 10;

export function effectRequest(state: NodeState, { stream, intent }: OpenEffect): EffectRequest {
  const { facts } = state;
  const { kind, id } = subjectOf(stream);
  if (facts === null) return bug(`${intent.kind} was requested before the daemon had started`);
  if (kind === 'sandbox') {
    const sandbox = state.sandboxes.get(id);
    return sandbox === undefined
      ? bug(`${intent.kind} was requested for a pod sandbox that is gone`)
      : forSandbox(state, facts, sandbox, intent);
  }
  if (kind === 'container') {
    const container = state.containers.get(id);
    const sandbox = container === undefined ? undefined : state.sandboxes.get(container.podSandboxId);
    return container === undefined || sandbox === undefined
      ? bug(`${intent.kind} was requested for a container that is gone`)
      : forContainer(state, facts, sandbox, container, intent);
  }
  return forNode(state, intent);
}

const bug = (message: string): EffectRequest => ({ ok: false, failure: { reason: 'Bug', message } });
const perform = (effect: Effect): EffectRequest => ({ ok: true, effect });
const misplaced = (intent: Intent, where: string): EffectRequest => bug(`${intent.kind} makes no sense for ${where}`);

function forNode(state: NodeState, intent: Intent): EffectRequest {
  switch (intent.kind) {
    case 'PullImage':
    case 'LoadImages':
    case 'DeleteImageContent':
    case 'ReadPodCheckpoint':
    case 'WaitUntil':
      return perform(intent);
    case 'ReadCheckpoint':
      return perform({ ...intent, knownDigests: checkpointDigests(state) });
    default:
      return misplaced(intent, 'an image or a call');
  }
}

function forSandbox(state: NodeState, facts: DaemonFacts, sandbox: PodSandbox, intent: Intent): EffectRequest {
  const { id: podSandboxId, handler, network } = sandbox;
  const bundle = bundlePath(facts, podSandboxId);
  switch (intent.kind) {
    case 'PreparePodSandbox': {
      const built = sandboxSpecOf(facts, sandbox);
      if (!built.ok) return built;
      return perform({
        kind: 'PreparePodSandbox',
        podSandboxId,
        dir: sandboxDir(facts, podSandboxId),
        files: etcFiles(sandbox.config, facts.node),
        shm: hasHostIpc(sandbox.config) ? null : { path: shmPath(facts, podSandboxId), sizeBytes: SHM_SIZE_BYTES },
        bundle: { id: podSandboxId, path: bundle, spec: built.spec },
        seccompProfilePath: seccompFileOf(seccompProfileOf(sandbox.config.linux?.securityContext)),
        chainIds: sandbox.image?.chainIds ?? null,
        ...(sandbox.selinux === undefined ? {} : { mountLabel: sandbox.selinux.mount }),
        ...usersOf(sandbox),
      });
    }
    case 'CleanPodSandbox':
      return perform({
        kind: 'CleanPodSandbox',
        podSandboxId,
        paths: [sandboxDir(facts, podSandboxId), bundle],
        hasSnapshot: sandbox.image !== null,
      });
    case 'CreateNetns':
      return perform({
        kind: 'CreateNetns',
        podSandboxId,
        path: netnsPath(facts, podSandboxId),
        ...(hasOwnUsers(sandbox.config) && sandbox.task !== null ? { holder: sandbox.task } : {}),
      });
    case 'RemoveNetns':
      return perform({ kind: 'RemoveNetns', podSandboxId, path: netnsPath(facts, podSandboxId) });
    case 'PinNamespaces':
      return perform({
        kind: 'PinNamespaces',
        podSandboxId,
        pins: namespacePins(facts, podSandboxId, sandbox.config),
        hostname: sandbox.config.hostname || null,
        sysctls: pinnedSysctls(facts, sandbox),
      });
    case 'UnpinNamespaces':
      return perform({
        kind: 'UnpinNamespaces',
        podSandboxId,
        pins: namespacePins(facts, podSandboxId, sandbox.config),
      });
    case 'AttachNetwork':
      return network === null
        ? misplaced(intent, 'the host network')
        : perform({ kind: 'AttachNetwork', podSandboxId, network });
    case 'DetachNetwork':
      return network === null
        ? misplaced(intent, 'the host network')
        : perform({ kind: 'DetachNetwork', podSandboxId, network, result: sandbox.networkResult });
    case 'StartShim':
      return perform({ kind: 'StartShim', podSandboxId, handler, bundlePath: bundle });
    case 'StopShim':
      return perform({
        kind: 'StopShim',
        podSandboxId,
        handler,
        bundlePath: bundle,
        shim: sandbox.shim,
        hasSandbox: sandbox.sandboxer === 'shim',
      });
    case 'StartSandbox':
      return sandbox.shim === null
        ? misplaced(intent, 'a pod without a shim')
        : perform({
            kind: 'StartSandbox',
            podSandboxId,
            shim: sandbox.shim,
            bundlePath: bundle,
            rootfs: sandbox.rootfs,
            netnsPath: network?.netnsPath ?? null,
            config: sandbox.config,
          });
    case 'StopSandbox':
      return perform({ kind: 'StopSandbox', podSandboxId, timeoutSeconds: STOP_SANDBOX_SECONDS });
    case 'ReconnectShim':
      return sandbox.shim === null
        ? misplaced(intent, 'a pod without a shim')
        : perform({
            kind: 'ReconnectShim',
            podSandboxId,
            shim: sandbox.shim,
            bundlePath: bundle,
            containerIds: [
              ...(sandbox.sandboxer === 'pause' ? [podSandboxId] : []),
              ...containersOf(state, podSandboxId)
                .filter(mayHaveTask)
                .map(({ id }) => id),
            ],
            ...(sandbox.sandboxer === 'shim' && sandbox.task !== null ? { sandboxPid: sandbox.task.pid } : {}),
          });
    case 'CreateTask':
      return perform(createPauseTask(facts, sandbox));
    case 'StartTask':
      return perform(startPauseTask(facts, sandbox));
    case 'KillTask':
      return perform({
        kind: 'KillTask',
        podSandboxId,
        containerId: podSandboxId,
        signal: intent.signal,
        all: intent.all,
      });
    case 'DeleteTask':
      return perform({ kind: 'DeleteTask', podSandboxId, containerId: podSandboxId, handler, bundlePath: bundle });
    case 'CheckpointPod':
      return perform({
        kind: 'CheckpointPod',
        podSandboxId,
        outputPath: intent.outputPath,
        containers: intent.containerIds.flatMap((containerId) => {
          const container = state.containers.get(containerId);
          const location = `${intent.outputPath}/${containerId}.tar`;
          return container === undefined ? [] : [taskCheckpoint(facts, sandbox, container, location, null)];
        }),
        description: {
          runtimeHandler: sandbox.runtimeHandler,
          config: sandbox.config,
          users: userNamespaceOf(sandbox.config),
        },
      });
    case 'EndPodCheckpoint':
      return perform({
        kind: 'EndPodCheckpoint',
        podSandboxId,
        outputPath: intent.outputPath,
        containers: intent.containerIds.map((containerId) => checkpointedTask(facts, containerId)),
      });
    case 'StreamPort':
      return perform({ ...intent, podSandboxId, netnsPath: network?.netnsPath ?? null });
    case 'WaitUntil':
      return perform(intent);
    default:
      return misplaced(intent, 'a pod sandbox');
  }
}

function labelsOf({ selinux }: PodSandbox, { config, facts }: Container): Pick<EffectOf<'PrepareContainer'>, 'labels'> {
  const { mount } = taskLabels(selinux, config);
  return mount === undefined || facts === null
    ? {}
    : { labels: { mount, paths: pathsToRelabel(selinux, config, facts) } };
}

const mayHaveTask = ({ steps }: Container): boolean => steps.task !== 'none' && steps.task !== 'undone';

function forContainer(
  state: NodeState,
  facts: DaemonFacts,
  sandbox: PodSandbox,
  container: Container,
  intent: Intent,
): EffectRequest {
  const { id: containerId, podSandboxId, config } = container;
  const bundle = bundlePath(facts, containerId);
  const users = userNamespaceOf(sandbox.config);
  switch (intent.kind) {
    case 'InspectContainer':
      return perform({
        kind: 'InspectContainer',
        containerId,
        questions: containerQuestions({
          ...container,
          sandboxConfig: sandbox.config,
          privilegedDevices: sandbox.handler.privilegedDevices,
          node: facts.node,
        }),
      });
    case 'PrepareContainer': {
      const built = containerSpecOf(state, facts, container);
      if (!built.ok) return built;
      return perform({
        kind: 'PrepareContainer',
        containerId,
        bundle: { id: containerId, path: bundle, spec: built.spec },
        chainIds: container.chainIds,
        imageVolumes: volumesOf(facts, container),
        imageMounts: imageMountsOf(facts, container).map(({ chainIds, hostPath }) => ({ chainIds, hostPath })),
        ...labelsOf(sandbox, container),
        ...(users === null || sandbox.task === null ? {} : { users: { ...users, holder: sandbox.task } }),
        ...(container.checkpointArchive === undefined
          ? {}
          : {
              checkpoint: {
                path: container.checkpointArchive,
                dir: restoreDir(facts, containerId),
                knownDigests: checkpointDigests(state),
              },
            }),
      });
    }
    case 'CleanContainer':
      return perform({ kind: 'CleanContainer', containerId, paths: [bundle, containerDir(facts, containerId)] });
    case 'CreateTask':
      return perform(createTask(state, facts, sandbox, container));
    case 'StartTask':
      return perform(startTask(facts, sandbox, container));
    case 'KillTask':
      return perform({ kind: 'KillTask', podSandboxId, containerId, signal: intent.signal, all: intent.all });
    case 'DeleteTask':
      return perform({ kind: 'DeleteTask', podSandboxId, containerId, handler: sandbox.handler, bundlePath: bundle });
    case 'RunExec':
      return perform({ ...intent, podSandboxId, containerId, bundlePath: bundle });
    case 'StreamExec':
      return perform({ ...intent, podSandboxId, containerId, bundlePath: bundle });
    case 'StreamAttach': {
      const { stdin = false, stdinOnce = false, tty: terminal = false } = config;
      // Closing it would end a terminal's output too.
      return perform({ ...intent, podSandboxId, containerId, terminal, stdin, closeStdin: stdinOnce && !terminal });
    }
    case 'EndExec':
      return perform({ ...intent, podSandboxId, containerId });
    case 'ReopenLog':
      return perform({ kind: 'ReopenLog', containerId, log: containerLog(sandbox, container) });
    case 'CheckpointTask':
      return perform({
        kind: 'CheckpointTask',
        ...taskCheckpoint(facts, sandbox, container, intent.location, intent.timeoutMs),
      });
    case 'EndCheckpoint':
      return perform({ ...intent, ...checkpointedTask(facts, containerId) });
    case 'UpdateContainer':
      return updateRequest(facts, container, intent);
    case 'WaitUntil':
      return perform(intent);
    default:
      return misplaced(intent, 'a container');
  }
}

const checkpointedTask = (facts: DaemonFacts, containerId: string): CheckpointedTask => ({
  containerId,
  bundlePath: bundlePath(facts, containerId),
  workDir: checkpointDir(facts, containerId),
});

const taskCheckpoint = (
  facts: DaemonFacts,
  sandbox: PodSandbox,
  { id, podSandboxId, config, rootfs, imageId }: Container,
  location: string,
  timeoutMs: number | null,
): TaskCheckpoint => ({
  ...checkpointedTask(facts, id),
  podSandboxId,
  location,
  timeoutMs,
  rootfs,
  description: {
    id,
    name: config.metadata?.name ?? '',
    rootfsImageName: config.image?.userSpecifiedImage || config.image?.image || '',
    rootfsImageRef: imageId,
    runtime: sandbox.handler.binaryName,
  },
});

function updateRequest(
  facts: DaemonFacts,
  container: Container,
  { resources: wanted, annotations }: ContainerUpdate,
): EffectRequest {
  const { node, settings } = facts;
  const failure = failureIn(() => ociResources(wanted, node));
  if (failure !== null) return { ok: false, failure };
  const resources = ociResources(wanted, node);
  return perform({
    kind: 'UpdateContainer',
    podSandboxId: container.podSandboxId,
    containerId: container.id,
    bundlePath: bundlePath(facts, container.id),
    hasTask: container.startedAtNs !== null,
    resources,
    ...(annotations === undefined ? {} : { annotations }),
    previous: undoingResources(ociResources(resourcesOf(container), node), resources),
    oomScoreAdj: oomScoreAdj(Number(wanted.oomScoreAdj ?? 0), node, settings.restrictOomScoreAdj),
  });
}
