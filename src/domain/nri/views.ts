/**
 * What plugins are told of a pod and of a container, made from the state and from their OCI specs. Pure, and told again
 * the same from the journal. Env and arguments stay tokens here (C12). Who is told when is not known here.
 */
import { containerExitOf, containerStateOf, liveTaskOf, runOf, startedAtNsOf } from '../model/container-state.ts';
import type { LinuxContainerResources, SecurityProfile } from '../model/cri.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import type { SandboxStep } from '../model/effects/pod-sandbox.ts';
import type { NriNamespace, NriRdt, NriResources, NriRlimit, NriScheduler } from '../model/nri.ts';
import type {
  NriContainer,
  NriContainerState,
  NriImage,
  NriLinuxContainer,
  NriLinuxPodSandbox,
  NriPodSandbox,
} from '../model/nri-views.ts';
import type { OciIntelRdt, OciRlimit, OciScheduler, OciSpec } from '../model/oci.ts';
import { limitsOf } from '../model/pod-sandbox-state.ts';
import type { Container, NodeState, PodSandbox } from '../model/state.ts';
import type { LaunchedTask } from '../model/tasks.ts';
import { classOf } from '../oci/classes/names.ts';
import { namespacePins } from '../oci/namespaces.ts';
import { profileOfText } from '../oci/security-profile.ts';
import { sandboxAnnotationsOf, sandboxSpecOf } from '../oci/specs.ts';
import { fromCriResources, fromOciResources } from './resources.ts';

type Fields<T> = { readonly [K in keyof Required<T>]: T[K] | undefined };

/** Without what is not said: every field has to be named, so that none is forgotten. */
const said = <T extends object>(fields: Fields<T>): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

const filled = <T>(list: readonly T[] | undefined): readonly T[] | undefined =>
  list === undefined || list.length === 0 ? undefined : list;

const asNri = (resources: LinuxContainerResources | undefined): NriResources | undefined =>
  resources === undefined ? undefined : fromCriResources(resources);

export function podSandboxView(facts: DaemonFacts, sandbox: PodSandbox): NriPodSandbox {
  const { id, config, runtimeHandler, ips } = sandbox;
  // Nothing runs by its spec where there is no pause task: there is no such cgroup, and there are no such limits.
  const built = sandbox.sandboxer === 'none' ? null : sandboxSpecOf(facts, sandbox);
  const spec = built?.ok === true ? built.value : null;
  return said<NriPodSandbox>({
    id,
    name: config.metadata?.name,
    uid: config.metadata?.uid,
    namespace: config.metadata?.namespace,
    labels: config.labels,
    annotations: {
      ...config.annotations,
      ...(built === null ? sandboxAnnotationsOf(facts, sandbox) : spec?.annotations),
    },
    runtimeHandler,
    linux: linuxSandbox(facts, sandbox, spec),
    pid: podPid(sandbox),
    ips: filled(ips),
  });
}

/** Absent where none of this node's processes holds it: without a pause task, in a machine of its own, once it has ended. */
const podPid = ({ steps, task, taskExit }: PodSandbox): number | undefined =>
  taskExit === null && steps.task === 'done' ? task?.pid || undefined : undefined;

function linuxSandbox(facts: DaemonFacts, sandbox: PodSandbox, spec: OciSpec | null): NriLinuxPodSandbox {
  const { overhead, resources } = limitsOf(sandbox);
  const held = spec?.linux;
  return said<NriLinuxPodSandbox>({
    podOverhead: asNri(overhead),
    podResources: asNri(resources),
    cgroupParent: sandbox.config.linux?.cgroupParent,
    cgroupsPath: held?.cgroupsPath,
    namespaces: held === undefined ? pinned(facts, sandbox) : joined(sandbox, held.namespaces),
    resources: held === undefined ? undefined : fromOciResources(held.resources),
  });
}

const isThere = ({ steps }: PodSandbox, step: SandboxStep): boolean =>
  steps[step] === 'done' || steps[step] === 'undoing' || steps[step] === 'owed';

function pinned(facts: DaemonFacts, sandbox: PodSandbox): readonly NriNamespace[] {
  if (!isThere(sandbox, 'namespaces')) return [];
  const pins = Object.entries(namespacePins(facts, sandbox.id, sandbox.config));
  return pins.flatMap(([type, path]: [string, string | null]) => (path === null ? [] : [{ type, path }]));
}

/** A network namespace that is gone is not told of, since what a plugin would find at its path is another, or nothing. */
const joined = (sandbox: PodSandbox, namespaces: readonly NriNamespace[]): readonly NriNamespace[] =>
  namespaces.flatMap((namespace) => {
    if (namespace.type !== 'network') return [namespace];
    const path = sandbox.network?.netnsPath;
    return path === undefined || !isThere(sandbox, 'netns') ? [] : [{ type: namespace.type, path }];
  });

export interface ShownContainer {
  readonly container: Container;
  /** undefined: it is gone. */
  readonly sandbox: PodSandbox | undefined;
  /** The final one; null: it can't be made (any more). */
  readonly spec: OciSpec | null;
  /** That plugins gave it, in place of the one that annotations ask for. */
  readonly blockioClass?: string;
  /** Made, and not started yet. */
  readonly task?: LaunchedTask;
  /** What is told is told because of its exit. */
  readonly handlesExit?: true;
}

export function containerView(state: Pick<NodeState, 'images'>, shown: ShownContainer): NriContainer {
  const { container, spec } = shown;
  const { id, podSandboxId, config } = container;
  const exit = containerExitOf(container);
  return said<NriContainer>({
    id,
    podSandboxId,
    name: config.metadata?.name ?? '',
    state: wordOf(shown),
    labels: config.labels,
    annotations: { ...spec?.annotations, ...config.annotations },
    args: spec?.process.args,
    env: spec?.process.env,
    mounts: spec?.mounts,
    hooks: spec?.hooks,
    linux: spec === null ? undefined : linuxContainer(spec, shown),
    pid: pidOf(shown),
    rlimits: filled(spec?.process.rlimits?.map(rlimitOf)),
    createdAtNs: container.phase.kind === 'creating' ? undefined : container.createdAtNs,
    startedAtNs: startedAtNsOf(container) ?? undefined,
    finishedAtNs: exit?.finishedAtNs,
    exitCode: exit?.exitStatus || undefined,
    statusReason: exit?.reason,
    statusMessage: exit?.message || undefined,
    cdiDevices: filled(config.CDIDevices?.map(({ name = '' }) => name)),
    user: spec?.process.user,
    image: imageOf(state, container),
  });
}

/** As containerd says it: one that is being created is not known yet, and one that has ended not any more. */
function wordOf({ container, handlesExit }: ShownContainer): NriContainerState {
  switch (containerStateOf(container)) {
    case 'CONTAINER_CREATED':
      return 'CONTAINER_CREATED';
    case 'CONTAINER_RUNNING':
      return 'CONTAINER_RUNNING';
    case 'CONTAINER_EXITED':
      return handlesExit === true ? 'CONTAINER_STOPPED' : 'CONTAINER_UNKNOWN';
    case null:
      return 'CONTAINER_UNKNOWN';
  }
}

/** The pid of a process that has ended may be anybody's: it is told once more with the exit, while the task is there. */
const pidOf = ({ container, task, handlesExit }: ShownContainer): number | undefined =>
  (liveTaskOf(container) ?? task ?? (handlesExit === true ? runOf(container)?.task : undefined))?.pid;

const rlimitOf = ({ type, hard, soft }: OciRlimit): NriRlimit => ({ type, hard: String(hard), soft: String(soft) });

function imageOf({ images }: Pick<NodeState, 'images'>, { imageId, config }: Container): NriImage {
  return said<NriImage>({
    name: config.image?.userSpecifiedImage || config.image?.image || imageId,
    digest: images.get(imageId)?.content.manifestDigest,
    configDigest: imageId,
  });
}

function linuxContainer({ process, linux }: OciSpec, shown: ShownContainer): NriLinuxContainer {
  return said<NriLinuxContainer>({
    namespaces: filled(linux.namespaces),
    devices: filled(linux.devices),
    resources: {
      ...fromOciResources(linux.resources),
      ...said<Pick<NriResources, 'blockioClass' | 'rdtClass'>>({
        blockioClass: blockioClassOf(shown),
        rdtClass: linux.intelRdt?.closID,
      }),
    },
    oomScoreAdj: process.oomScoreAdj,
    cgroupsPath: linux.cgroupsPath,
    ioPriority: process.ioPriority,
    seccompProfile: seccompProfileAsked(shown.container),
    seccompPolicy: linux.seccomp,
    sysctl: linux.sysctl,
    netDevices: linux.netDevices,
    scheduler: process.scheduler === undefined ? undefined : schedulerOf(process.scheduler),
    rdt: linux.intelRdt === undefined ? undefined : rdtOf(linux.intelRdt),
  });
}

/** The spec has what the class stands for, and not its name. */
const blockioClassOf = ({ blockioClass, container, sandbox }: ShownContainer): string | undefined =>
  blockioClass ?? classOf('blockIO', container.config, sandbox?.config ?? {})?.name;

/** What was asked for, also where nothing came of it; plugins judge by it what they may replace. */
export function seccompProfileAsked({ config }: Container): SecurityProfile | undefined {
  const { seccomp, seccompProfilePath } = config.linux?.securityContext ?? {};
  return seccomp ?? (seccompProfilePath ? (profileOfText(seccompProfilePath) ?? undefined) : undefined);
}

const schedulerOf = ({ runtime, deadline, period, ...rest }: OciScheduler): NriScheduler => ({
  ...rest,
  ...(runtime === undefined ? {} : { runtimeNs: String(runtime) }),
  ...(deadline === undefined ? {} : { deadlineNs: String(deadline) }),
  ...(period === undefined ? {} : { periodNs: String(period) }),
});

const rdtOf = ({ closID, schemata, enableMonitoring }: OciIntelRdt): NriRdt =>
  said<Omit<NriRdt, 'remove'>>({ closId: closID, schemata, enableMonitoring });
