/**
 * The info maps of verbose replies: JSON for people and tools. Configurations are in CRI's own words, specs and image configs in
 * OCI's, and keys that tools look for are named as other runtimes name them. Holds tokens where secrets were (C12).
 */
import type { LinuxContainerResources } from '../../../domain/model/cri.ts';
import type { ImageContent } from '../../../domain/model/image-content.ts';
import { SANDBOX_STEPS, stateOf } from '../../../domain/pod-sandbox/steps.ts';
import { containerStepsOf, liveTaskOf } from '../../../domain/model/container-state.ts';
import { limitsOf } from '../../../domain/model/pod-sandbox-state.ts';
import type { Container, NodeState, PodSandbox } from '../../../domain/model/state.ts';
import type { CriParts } from '../parts.ts';
import { inCriWords } from './cri-words.ts';
import { shownContainerSpec, shownPodSpec } from './runtime-specs.ts';

/** A pod without a pause task has no process of its own. */
const processStatusOf = ({ sandboxer, taskExit }: PodSandbox): string => {
  if (sandboxer === 'none') return 'none';
  return taskExit === null ? 'running' : 'stopped';
};

/** Its shim's own sandbox service holds it, and may be asked. */
export const hasOwnSandbox = ({ sandboxer, steps }: PodSandbox): boolean =>
  sandboxer === 'shim' && steps.task === 'done';

/** 0 where no process of this node holds it (any more): the number may be another's by now. */
const pidOf = ({ task, taskExit, steps }: PodSandbox): number =>
  taskExit === null && steps.task === 'done' ? (task?.pid ?? 0) : 0;

const limitsInfo = (sandbox: PodSandbox): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(limitsOf(sandbox)).map(([name, limits]: [string, LinuxContainerResources]) => [
      name,
      inCriWords('runtime.v1.LinuxContainerResources', limits),
    ]),
  );

export const podSandboxInfo = (state: Readonly<NodeState>, sandbox: PodSandbox): Readonly<Record<string, unknown>> => ({
  pid: pidOf(sandbox),
  sandboxer: sandbox.sandboxer,
  ...(sandbox.platform === undefined ? {} : { platform: sandbox.platform }),
  processStatus: processStatusOf(sandbox),
  netNamespaceClosed: sandbox.stopped,
  runtimeHandler: sandbox.runtimeHandler,
  runtimeType: sandbox.handler.runtimeType,
  config: inCriWords('runtime.v1.PodSandboxConfig', sandbox.config),
  ...limitsInfo(sandbox),
  runtimeSpec: shownPodSpec(state, sandbox),
  cniResult: sandbox.networkResult,
  steps: Object.fromEntries(SANDBOX_STEPS.map((step) => [step, stateOf(sandbox, step)])),
});

export const containerInfo = (state: Readonly<NodeState>, container: Container): Readonly<Record<string, unknown>> => ({
  sandboxID: container.podSandboxId,
  pid: liveTaskOf(container)?.pid ?? 0,
  removing: container.goal === 'remove',
  imageId: container.imageId,
  runtimeType: state.sandboxes.get(container.podSandboxId)?.handler.runtimeType ?? '',
  config: inCriWords('runtime.v1.ContainerConfig', container.config),
  runtimeSpec: shownContainerSpec(state, container),
  steps: containerStepsOf(container),
});

/** What is known of an image's config without the config, in the words of OCI's image-spec. */
const knownOfConfig = ({ config, layers }: ImageContent): Readonly<Record<string, unknown>> => ({
  config: {
    User: config.user,
    Env: config.env,
    Entrypoint: config.entrypoint,
    Cmd: config.cmd,
    Volumes: config.volumes === undefined ? undefined : Object.fromEntries(config.volumes.map((path) => [path, {}])),
    WorkingDir: config.workingDir,
    StopSignal: config.stopSignal,
  },
  rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
});

/** `imageConfig`: the image's own, as it came from its registry; null: it can't be shown. */
export const imageInfo = (
  content: ImageContent,
  imageConfig: Readonly<Record<string, unknown>> | null,
): Readonly<Record<string, unknown>> => ({
  chainID: content.layers.at(-1)?.chainId ?? '',
  imageSpec: imageConfig ?? knownOfConfig(content),
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
