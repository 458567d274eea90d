/** The info maps of verbose replies: JSON for people and tools. Holds tokens where secrets were (C12). */
import { SANDBOX_STEPS, stateOf } from '../../../domain/pod-sandbox/steps.ts';
import { containerStepsOf, liveTaskOf } from '../../../domain/model/container-state.ts';
import { limitsOf } from '../../../domain/model/pod-sandbox-state.ts';
import type { Container, NodeState, PodSandbox } from '../../../domain/model/state.ts';
import type { CriParts } from '../parts.ts';

/** A pod without a pause task has no process of its own. */
const processStatusOf = ({ sandboxer, taskExit }: PodSandbox): string => {
  if (sandboxer === 'none') return 'none';
  return taskExit === null ? 'running' : 'stopped';
};

/** Its shim's own sandbox service holds it, and may be asked. */
export const hasOwnSandbox = ({ sandboxer, steps }: PodSandbox): boolean =>
  sandboxer === 'shim' && steps.task === 'done';

export const podSandboxInfo = (sandbox: PodSandbox): Readonly<Record<string, unknown>> => ({
  pid: sandbox.task?.pid ?? 0,
  sandboxer: sandbox.sandboxer,
  ...(sandbox.platform === undefined ? {} : { platform: sandbox.platform }),
  processStatus: processStatusOf(sandbox),
  netNamespaceClosed: sandbox.stopped,
  runtimeHandler: sandbox.runtimeHandler,
  runtimeType: sandbox.handler.runtimeType,
  config: sandbox.config,
  ...limitsOf(sandbox),
  cniResult: sandbox.networkResult,
  steps: Object.fromEntries(SANDBOX_STEPS.map((step) => [step, stateOf(sandbox, step)])),
});

export const containerInfo = (container: Container): Readonly<Record<string, unknown>> => ({
  sandboxID: container.podSandboxId,
  pid: liveTaskOf(container)?.pid ?? 0,
  removing: container.goal === 'remove',
  imageId: container.imageId,
  config: container.config,
  steps: containerStepsOf(container),
});

/** What confines containers here beside namespaces and capabilities; null before the daemon knows. */
const securityOf = (facts: NodeState['facts']): Readonly<Record<string, unknown>> | null =>
  facts === null
    ? null
    : {
        seccomp: facts.node.seccomp,
        apparmor: facts.node.apparmor,
        selinux: facts.node.selinux,
        selinuxContexts: facts.selinux ?? null,
      };

export const statusInfo = (parts: CriParts): Record<string, string> => ({
  config: JSON.stringify(parts.describeConfig()),
  network: JSON.stringify(parts.view.state.network),
  security: JSON.stringify(securityOf(parts.view.state.facts)),
  events: JSON.stringify({ passedOver: parts.events.passedOver() }),
});

/** The info map of a reply: one JSON text when verbose was asked for. */
export const infoWhen = (
  verbose: boolean,
  describe: () => Readonly<Record<string, unknown>>,
): Record<string, string> => (verbose ? { info: JSON.stringify(describe()) } : {});
