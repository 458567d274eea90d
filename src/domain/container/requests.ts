/**
 * From an intent on a container to the whole request that an adapter can perform. A function of the state alone, so that
 * a replay gives the same requests.
 */
import { type EffectRequest, misplaced, type NoneOf, perform } from '../deciding/effect-request.ts';
import { isRunning, liveTaskOf, removedMeanwhile, resourcesOf } from '../model/container-state.ts';
import { NamespaceMode } from '../model/cri.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { ContainerQuestions } from '../model/container-facts.ts';
import type { EffectOf } from '../model/effects.ts';
import type { CheckpointedTask, CheckpointIntents, TaskCheckpoint } from '../model/effects/checkpoint.ts';
import type { SessionIntents } from '../model/effects/session.ts';
import type { MappedMounts } from '../model/effects/task.ts';
import { bundlePath, checkpointDir, containerDir, restoreDir } from '../model/paths.ts';
import type { Intent } from '../model/records.ts';
import type { ContainerIntents, ContainerUpdate } from '../model/effects/container.ts';
import type { ContainerAdjustment } from '../model/nri.ts';
import { rulesOf } from '../model/rules.ts';
import type { Container, NodeState, PodSandbox } from '../model/state.ts';
import { beyondThatHolds, withBeyond } from '../nri/beyond-cri.ts';
import { pluginCall } from '../nri/calls.ts';
import { NOTHING_MERGED } from '../nri/merge.ts';
import { containerAsAsked, containerNow } from '../nri/of-state.ts';
import { refused } from '../model/result.ts';
import { containerQuestions } from '../oci/container-spec.ts';
import { failureIn } from '../oci/refuse.ts';
import { ociResources, oomScoreAdj, undoingResources } from '../oci/resources.ts';
import { pathsToRelabel, taskLabels } from '../oci/selinux.ts';
import { imageMountsOf, mappedMountsOf, volumesOf } from '../oci/specs.ts';
import { hasOwnUsers, userNamespaceOf, usersOf } from '../oci/user-namespace.ts';
import { checkpointDigests } from './checkpoint-digests.ts';
import { containerLog } from './log.ts';
import { adjustedSpecOf } from '../nri/spec.ts';

/** Those of a pod and of what can be restored are made elsewhere; StreamPort's streams go to a pod. */
type Own =
  | keyof ContainerIntents
  | 'CallPlugins'
  | Exclude<keyof SessionIntents, 'StreamPort'>
  | Exclude<keyof CheckpointIntents, 'CheckpointPod' | 'EndPodCheckpoint' | 'ReadPodCheckpoint' | 'ReadCheckpoint'>;

export function containerRequest(
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
      return perform({ kind: 'InspectContainer', containerId, questions: questionsOf(facts, sandbox, container) });
    case 'PrepareContainer': {
      // It follows the inspection, during which the container may have been given up.
      if (container.goal !== 'run' && rulesOf(state) >= 8)
        return refused(container.failure ?? removedMeanwhile(containerId));
      const built = adjustedSpecOf(state, facts, container);
      if (!built.ok) return built;
      return perform({
        kind: 'PrepareContainer',
        containerId,
        bundle: { id: containerId, path: bundle, spec: built.value },
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
    case 'CallPlugins':
      return perform({
        ...pluginCall(state, facts, sandbox, intent),
        ...aboutContainer(state, facts, container, intent),
      });
    case 'WaitUntil':
      return perform(intent);
    default:
      return misplaced(intent satisfies NoneOf<Own>, 'a container');
  }
}

function aboutContainer(
  state: NodeState,
  facts: DaemonFacts,
  container: Container,
  { hook, proposal }: Extract<Intent, { readonly kind: 'CallPlugins' }>,
): Pick<EffectOf<'CallPlugins'>, 'container' | 'proposal'> {
  if (proposal === undefined) return { container: containerNow(state, facts, container, hook) };
  const { adjust, owners } = container.nri?.adjusted ?? NOTHING_MERGED;
  return {
    container: containerAsAsked(state, facts, container),
    proposal: { ...proposal, adjust, owners: { ...proposal.owners, [container.id]: owners } },
  };
}

/** Once plugins have changed it, what the names in their changes stand for. */
function questionsOf(facts: DaemonFacts, sandbox: PodSandbox, container: Container): ContainerQuestions {
  const questions = containerQuestions({
    ...container,
    sandboxConfig: sandbox.config,
    privilegedDevices: sandbox.handler.privilegedDevices,
    node: facts.node,
  });
  const adjust = container.nri?.adjusted?.adjust;
  return adjust === undefined ? questions : { ...questions, ...namesIn(adjust) };
}

const namesIn = ({
  cdiDevices,
  linux,
}: ContainerAdjustment): Pick<ContainerQuestions, 'cdiDevices' | 'blockIOClass'> => ({
  cdiDevices: cdiDevices ?? [],
  ...(linux?.resources?.blockioClass === undefined ? {} : { blockIOClass: linux.resources.blockioClass }),
});

export const readCheckpointRequest = (
  state: NodeState,
  intent: Extract<Intent, { kind: 'ReadCheckpoint' }>,
): EffectRequest => perform({ ...intent, knownDigests: checkpointDigests(state) });

function labelsOf({ selinux }: PodSandbox, { config, facts }: Container): Pick<EffectOf<'PrepareContainer'>, 'labels'> {
  const { mount } = taskLabels(selinux, config);
  return mount === undefined || facts === null
    ? {}
    : { labels: { mount, paths: pathsToRelabel(selinux, config, facts) } };
}

export const checkpointedTask = (facts: DaemonFacts, containerId: string): CheckpointedTask => ({
  containerId,
  bundlePath: bundlePath(facts, containerId),
  workDir: checkpointDir(facts, containerId),
});

export const taskCheckpoint = (
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
  { resources: wanted, annotations, beyond }: ContainerUpdate,
): EffectRequest {
  const { node, settings } = facts;
  const failure = failureIn(() => ociResources(wanted, node));
  if (failure !== null) return refused(failure);
  const resources = withBeyond(ociResources(wanted, node), beyondThatHolds(container, beyond));
  const before = withBeyond(ociResources(resourcesOf(container), node), beyondThatHolds(container));
  return perform({
    kind: 'UpdateContainer',
    podSandboxId: container.podSandboxId,
    containerId: container.id,
    bundlePath: bundlePath(facts, container.id),
    hasTask: isRunning(container),
    resources,
    ...(annotations === undefined ? {} : { annotations }),
    previous: undoingResources(before, resources),
    oomScoreAdj: oomScoreAdj(Number(wanted.oomScoreAdj ?? 0), node, settings.restrictOomScoreAdj),
  });
}

/** Volumes as the pod's own users see them; absent where the pod has none of its own. */
const mappedOf = (
  facts: DaemonFacts,
  { config, task: holder }: PodSandbox,
  container: Container,
): { readonly mapped?: MappedMounts } =>
  holder === null || !hasOwnUsers(config) ? {} : { mapped: { holder, mounts: mappedMountsOf(facts, container) } };

const taskOf = (facts: DaemonFacts, { handler }: PodSandbox, { id: containerId, podSandboxId }: Container) => ({
  podSandboxId,
  containerId,
  handler,
  bundlePath: bundlePath(facts, containerId),
});

/** The spec names a process by its pid, which may be another's by the time of the start. */
function targetOf({ containers }: NodeState, { config }: Container): Pick<EffectOf<'CreateTask'>, 'target'> {
  const { pid, targetId = '' } = config.linux?.securityContext?.namespaceOptions ?? {};
  return pid === NamespaceMode.TARGET ? { target: liveTaskOf(containers.get(targetId)) } : {};
}

function createTask(
  state: NodeState,
  facts: DaemonFacts,
  sandbox: PodSandbox,
  container: Container,
): EffectOf<'CreateTask'> {
  const { config, rootfs, checkpointArchive } = container;
  return {
    kind: 'CreateTask',
    ...taskOf(facts, sandbox, container),
    // For users of the pod's own it was mounted with the bundle.
    rootfs: hasOwnUsers(sandbox.config) ? [] : rootfs,
    terminal: config.tty ?? false,
    stdin: config.stdin ?? false,
    stdinOnce: config.stdinOnce ?? false,
    log: containerLog(sandbox, container),
    ...usersOf(sandbox.config),
    ...mappedOf(facts, sandbox, container),
    ...targetOf(state, container),
    ...(checkpointArchive === undefined ? {} : { checkpointDir: restoreDir(facts, container.id) }),
  };
}

function startTask(facts: DaemonFacts, sandbox: PodSandbox, container: Container): EffectOf<'StartTask'> {
  const task = { kind: 'StartTask', ...taskOf(facts, sandbox, container) } as const;
  if (container.checkpointArchive === undefined) return task;
  const checkpointDir = restoreDir(facts, container.id);
  return { ...task, restored: { checkpointDir, ...mappedOf(facts, sandbox, container) } };
}
