/**
 * From an intent on a PodSandbox to the whole request that an adapter can perform. A function of the state alone, so
 * that a replay gives the same requests. Those that make or undo a step are with its row in steps.ts.
 */
import { checkpointedTask, taskCheckpoint } from '../container/requests.ts';
import { mayHaveTask } from '../model/container-state.ts';
import { type EffectRequest, misplaced, perform } from '../deciding/effect-request.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { bundlePath } from '../model/paths.ts';
import type { Intent } from '../model/records.ts';
import { containersOf, type NodeState, type PodSandbox } from '../model/state.ts';
import { userNamespaceOf } from '../oci/user-namespace.ts';
import { pluginCall } from '../nri/calls.ts';
import { sharedShimOf, stepRequest } from './steps.ts';

export function podSandboxRequest(
  state: NodeState,
  facts: DaemonFacts,
  sandbox: PodSandbox,
  intent: Intent,
): EffectRequest {
  const { id: podSandboxId, network } = sandbox;
  const bundle = bundlePath(facts, podSandboxId);
  switch (intent.kind) {
    case 'ReconnectShim':
      return sandbox.shim === null
        ? misplaced(intent, 'a pod without a shim')
        : perform({
            kind: 'ReconnectShim',
            podSandboxId,
            shim: sandbox.shim,
            bundlePath: bundle,
            ...sharedShimOf(sandbox, facts),
            containerIds: [
              ...(sandbox.sandboxer === 'pause' ? [podSandboxId] : []),
              ...containersOf(state, podSandboxId)
                .filter(mayHaveTask)
                .map(({ id }) => id),
            ],
            ...(sandbox.sandboxer === 'shim' && sandbox.task !== null ? { sandboxPid: sandbox.task.pid } : {}),
          });
    case 'KillTask':
      return perform({
        kind: 'KillTask',
        podSandboxId,
        containerId: podSandboxId,
        signal: intent.signal,
        all: intent.all,
      });
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
    case 'CallPlugins':
      return perform(pluginCall(state, facts, sandbox, intent));
    case 'WaitUntil':
      return perform(intent);
    default:
      return stepRequest(sandbox, facts, state, intent.kind) ?? misplaced(intent, 'a pod sandbox');
  }
}
