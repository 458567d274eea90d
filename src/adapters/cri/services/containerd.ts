/**
 * The little of containerd's own API that cAdvisor asks for, which is within kubelet: whose a control group with an id in its name is,
 * under which labels, and how its process is. With kubelet's flag --containerd the figures of containers are told under their
 * names, as they are beside containerd. Answers from the read model; changes nothing, and records nothing.
 */
import { containerExitOf, containerStateOf, liveTaskOf } from '../../../domain/model/container-state.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import type { Container, NodeState, PodSandbox } from '../../../domain/model/state.ts';
import type { LaunchedTask } from '../../../domain/model/tasks.ts';
import { shown } from '../../../domain/oci/refuse.ts';
import type { GetContainerRequest, GetContainerResponse } from '../../../wire/services/containers/v1/containers.ts';
import type { GetRequest, GetResponse } from '../../../wire/services/tasks/v1/tasks.ts';
import type { VersionResponse } from '../../../wire/services/version/v1/version.ts';
import { Process, Status } from '../../../wire/types/task/task.ts';
import { labelsOf } from '../messages/to-wire.ts';
import type { CriParts } from '../parts.ts';

/** What cAdvisor goes by to read the network's figures where they are a pod's, and nowhere else. */
const KIND_LABEL = 'io.cri-containerd.kind';
type Kind = 'sandbox' | 'container';

/** It wants one; its environment is nobody's business. */
const SPEC = {
  typeUrl: 'types.containerd.io/opencontainers/runtime-spec/1/Spec',
  value: Buffer.from(JSON.stringify({ ociVersion: '1.0.2', process: { env: [] } })),
};

type Known = { readonly container: Container } | { readonly sandbox: PodSandbox };

/** By the whole id, from when its files are made: cAdvisor asks as soon as the kernel has the control group, and only once. */
const known = (state: NodeState, id: string): Known => {
  const container = state.containers.get(id);
  if (container !== undefined) return { container };
  const sandbox = state.sandboxes.get(id);
  if (sandbox !== undefined) return { sandbox };
  throw new FailureError('ContainerNotFound', `id ${shown(id)} names no container.`);
};

const hasExited = (container: Container): boolean => containerStateOf(container) === 'CONTAINER_EXITED';

/**
 * Under which of its containers a pod without a process of its own tells its network's figures: under one at a time, or they
 * would count twice. Another takes its turn once that has ended, which is asked when the other is made.
 */
const createBearers = (): ((state: NodeState, container: Container) => Kind) => {
  const bearers = new Map<string, string>();
  return ({ sandboxes, containers }, { id, podSandboxId }) => {
    const pod = sandboxes.get(podSandboxId);
    if (pod === undefined || pod.task !== null || pod.network === null) return 'container';
    for (const gone of bearers.keys()) if (!sandboxes.has(gone)) bearers.delete(gone);
    const bearer = containers.get(bearers.get(podSandboxId) ?? '');
    if (bearer !== undefined && !hasExited(bearer)) return bearer.id === id ? 'sandbox' : 'container';
    // After a restart of the daemon: who was first has it.
    const alive = bearers.has(podSandboxId)
      ? []
      : [...containers.values()].filter((other) => other.podSandboxId === podSandboxId && !hasExited(other));
    const [first] = alive.toSorted((one, other) => one.seq - other.seq);
    const chosen = first?.id ?? id;
    bearers.set(podSandboxId, chosen);
    return chosen === id ? 'sandbox' : 'container';
  };
};

/** Its process, from when that is made, which is before its program runs. */
const taskOf = (container: Container): LaunchedTask | null => {
  const { phase } = container;
  if (phase.kind === 'created') return phase.ahead?.step === 'done' ? phase.ahead.task : null;
  return phase.kind === 'starting' ? (phase.made ?? null) : liveTaskOf(container);
};

const NO_PROCESS = Process.create();

const processNow = (task: LaunchedTask | null, isRunning: boolean, exitStatus: number | null): Process => {
  if (exitStatus !== null) return { ...NO_PROCESS, status: Status.STOPPED, exitStatus };
  // Whoever hears that it is unknown asks again in a moment.
  if (task === null) return { ...NO_PROCESS, status: Status.UNKNOWN };
  return { ...NO_PROCESS, status: isRunning ? Status.RUNNING : Status.CREATED, pid: task.pid };
};

const processOf = (of: Known): Process => {
  if ('sandbox' in of) return processNow(of.sandbox.task, true, of.sandbox.taskExit?.exitStatus ?? null);
  const { container } = of;
  const state = containerStateOf(container);
  const exitStatus = state === 'CONTAINER_EXITED' ? (containerExitOf(container)?.exitStatus ?? 0) : null;
  return processNow(taskOf(container), state === 'CONTAINER_RUNNING', exitStatus);
};

export interface ContainerdServices {
  readonly containers: { readonly get: (request: GetContainerRequest) => GetContainerResponse };
  readonly tasks: { readonly get: (request: GetRequest) => GetResponse };
  readonly version: { readonly version: () => VersionResponse };
}

export const containerdServices = ({ view, version }: Pick<CriParts, 'view' | 'version'>): ContainerdServices => {
  const kindOf = createBearers();
  return {
    containers: {
      get({ id }) {
        const of = known(view.state, id);
        const told = (labels: Container['config']['labels'], kind: Kind, image = ''): GetContainerResponse => ({
          container: { id, labels: { ...labelsOf(labels), [KIND_LABEL]: kind }, image, spec: SPEC },
        });
        if ('sandbox' in of) return told(of.sandbox.config.labels, 'sandbox');
        const { labels, image } = of.container.config;
        return told(labels, kindOf(view.state, of.container), image?.image);
      },
    },
    tasks: {
      get: ({ containerId }) => ({
        process: { ...processOf(known(view.state, containerId)), containerId, id: containerId },
      }),
    },
    version: { version: () => ({ version, revision: '' }) },
  };
};
