/**
 * The whole requests that launch a task, of a container or of a pod's pause container: from the state alone, as all
 * requests of effect-requests.ts, which calls this.
 */
import { containerLog } from '../container/log.ts';
import { NamespaceMode } from '../model/cri.ts';
import type { EffectOf } from '../model/effects.ts';
import type { MappedMounts } from '../model/effects/task.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { hasOwnUsers, userNamespaceOf } from '../oci/user-namespace.ts';
import type { PodUserNamespace } from '../model/user-namespace.ts';
import { bundlePath, restoreDir } from '../model/paths.ts';
import { mappedMountsOf } from '../oci/specs.ts';
import type { Container, NodeState, PodSandbox } from '../model/state.ts';
import type { Mount } from '../model/tasks.ts';

export const usersOf = ({ config }: PodSandbox): { readonly users?: PodUserNamespace } => {
  const users = userNamespaceOf(config);
  return users === null ? {} : { users };
};

/** Where it lies, only the node's root can look; where it is mounted, anybody can. */
const pauseMount = ({ pauseRootfs }: DaemonFacts): Mount => ({
  type: 'bind',
  source: pauseRootfs,
  options: ['rbind', 'ro'],
});

export const startPauseTask = (facts: DaemonFacts, { id, handler }: PodSandbox): EffectOf<'StartTask'> => ({
  kind: 'StartTask',
  podSandboxId: id,
  containerId: id,
  handler,
  bundlePath: bundlePath(facts, id),
});

export const createPauseTask = (facts: DaemonFacts, sandbox: PodSandbox): EffectOf<'CreateTask'> => ({
  ...startPauseTask(facts, sandbox),
  kind: 'CreateTask',
  rootfs: hasOwnUsers(sandbox.config) ? [pauseMount(facts)] : sandbox.rootfs,
  terminal: false,
  stdin: false,
  stdinOnce: false,
  log: null,
  ...usersOf(sandbox),
});

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
  return pid === NamespaceMode.TARGET ? { target: containers.get(targetId)?.task ?? null } : {};
}

export function createTask(
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
    ...usersOf(sandbox),
    ...mappedOf(facts, sandbox, container),
    ...targetOf(state, container),
    ...(checkpointArchive === undefined ? {} : { checkpointDir: restoreDir(facts, container.id) }),
  };
}

export function startTask(facts: DaemonFacts, sandbox: PodSandbox, container: Container): EffectOf<'StartTask'> {
  const task = { kind: 'StartTask', ...taskOf(facts, sandbox, container) } as const;
  if (container.checkpointArchive === undefined) return task;
  const checkpointDir = restoreDir(facts, container.id);
  return { ...task, restored: { checkpointDir, ...mappedOf(facts, sandbox, container) } };
}
