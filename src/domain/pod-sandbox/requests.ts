/**
 * From an intent on a PodSandbox to the whole request that an adapter can perform. A function of the state alone, so
 * that a replay gives the same requests.
 */
import { checkpointedTask, mayHaveTask, taskCheckpoint } from '../container/requests.ts';
import { type EffectRequest, misplaced, perform } from '../deciding/effect-request.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { EffectOf } from '../model/effects.ts';
import { bundlePath, netnsPath, sandboxDir, shmPath } from '../model/paths.ts';
import type { Intent } from '../model/records.ts';
import { containersOf, type NodeState, type PodSandbox } from '../model/state.ts';
import type { Mount } from '../model/tasks.ts';
import { etcFiles } from '../oci/etc-files.ts';
import { hasHostIpc, namespacePins } from '../oci/namespaces.ts';
import { seccompFileOf, seccompProfileOf } from '../oci/seccomp.ts';
import { pinnedSysctls, sandboxSpecOf } from '../oci/specs.ts';
import { hasOwnUsers, userNamespaceOf, usersOf } from '../oci/user-namespace.ts';

/** /dev/shm of a pod, as Docker and containerd size it. */
const SHM_SIZE_BYTES = 64 * 1024 * 1024;

/** For a sandbox whose containers are gone already; what takes longer ends with its shim. */
const STOP_SANDBOX_SECONDS = 10;

export function podSandboxRequest(
  state: NodeState,
  facts: DaemonFacts,
  sandbox: PodSandbox,
  intent: Intent,
): EffectRequest {
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
        ...usersOf(sandbox.config),
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

/** Where it lies, only the node's root can look; where it is mounted, anybody can. */
const pauseMount = ({ pauseRootfs }: DaemonFacts): Mount => ({
  type: 'bind',
  source: pauseRootfs,
  options: ['rbind', 'ro'],
});

const startPauseTask = (facts: DaemonFacts, { id, handler }: PodSandbox): EffectOf<'StartTask'> => ({
  kind: 'StartTask',
  podSandboxId: id,
  containerId: id,
  handler,
  bundlePath: bundlePath(facts, id),
});

const createPauseTask = (facts: DaemonFacts, sandbox: PodSandbox): EffectOf<'CreateTask'> => ({
  ...startPauseTask(facts, sandbox),
  kind: 'CreateTask',
  rootfs: hasOwnUsers(sandbox.config) ? [pauseMount(facts)] : sandbox.rootfs,
  terminal: false,
  stdin: false,
  stdinOnce: false,
  log: null,
  ...usersOf(sandbox.config),
});
