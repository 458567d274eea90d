/**
 * SELinux labels of pods: what processes run under and what their files are labelled with. A pod's labels are chosen once,
 * when it is asked for, and written down with it; its containers have them but for what they say themselves. Two pods
 * differ in their categories (MCS), so neither can reach the other's files.
 */
import type { ContainerFacts } from '../model/container-facts.ts';
import type { ContainerConfig, PodSandboxConfig, SELinuxOption } from '../model/cri.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import type { SelinuxContexts, SelinuxLabels } from '../model/selinux.ts';
import type { Mount } from '../model/tasks.ts';
import { DIRECTORIES_OF_NODE } from './directories-of-node.ts';
import { sharesProcessesOrIpc } from './namespaces.ts';
import { refuse, refuseField, shown } from './refuse.ts';

const FIELD = 'linux.security_context.selinux_options';
const RELABEL_FIELD = 'mounts.selinux_relabel';
const CATEGORIES = 1024;
/** The type of processes that run a virtual machine, in the policy that distributions have for containers. */
const KVM_TYPE = 'container_kvm_t';

interface Context {
  readonly user: string;
  readonly role: string;
  readonly type: string;
  /** undefined with a policy that knows none. */
  readonly level: string | undefined;
}

function parse(label: string): Context {
  const [user = '', role = '', type = '', ...level] = label.split(':');
  return { user, role, type, level: level.length === 0 ? undefined : level.join(':') };
}

const labelOf = ({ user, role, type, level }: Context): string =>
  [user, role, type, ...(level === undefined ? [] : [level])].join(':');

/** What is empty is left as it is; a level goes nowhere in a policy without levels. */
function withOptions(label: string, { user, role, type, level }: SELinuxOption): string {
  const own = parse(label);
  return labelOf({
    user: user || own.user,
    role: role || own.role,
    type: type || own.type,
    level: own.level === undefined ? undefined : level || own.level,
  });
}

/** Files have a role and a type of their own. */
const withFileOptions = (label: string, { user = '', level = '' }: SELinuxOption): string =>
  withOptions(label, { user, level });

const optionsOf = (config: PodSandboxConfig | ContainerConfig): SELinuxOption =>
  config.linux?.securityContext?.selinuxOptions ?? {};

const isWholeRange = (part: string): boolean => {
  const [first = 0, last = first] = part.split('.').map((category) => Number(category.slice(1)));
  return first <= last && last < CATEGORIES;
};

/** s0, s0-s0, s0:c1,c2, s0-s0:c0.c1023, … */
function isLevel(level: string): boolean {
  const category = String.raw`c\d{1,4}(\.c\d{1,4})?`;
  const sensitivity = String.raw`s\d{1,2}(:${category}(,${category})*)?`;
  if (!new RegExp(`^${sensitivity}(-${sensitivity})?$`).test(level)) return false;
  return (level.match(/c\d+(\.c\d+)?/g) ?? []).every(isWholeRange);
}

/** @throws {FailureError} InvalidField for what can be no part of a label */
export function checkSelinuxOptions(config: PodSandboxConfig | ContainerConfig): void {
  const { user, role, type, level } = optionsOf(config);
  for (const [name, text] of Object.entries({ user, role, type }))
    if (text && !/^[A-Za-z0-9_.-]{1,128}$/.test(text))
      refuseField(`${FIELD}.${name}`, `is ${shown(text)}: it must be a name of the node's policy`);
  if (level && !isLevel(level))
    refuseField(`${FIELD}.level`, `is ${shown(level)}: it must be like s0 or s0:c1,c2, with categories up to c1023`);
}

/**
 * Labels mean nothing on a node without SELinux, so they are let through there.
 * @throws {FailureError} HostLacks where they would mean something and are not given
 */
export function checkSelinux(
  config: PodSandboxConfig | ContainerConfig,
  node: NodeFacts,
  labels: SelinuxLabels | undefined,
): void {
  if (!node.selinux || labels !== undefined || !Object.values(optionsOf(config)).some(Boolean)) return;
  refuse('HostLacks', `${FIELD} asks for a label, and this pod has none: leave it out, or set runtime.enable_selinux`);
}

/** A pod's level: what it asks for, or two categories that no other pod has. */
function levelFor(podSandboxId: string, base: string, taken: ReadonlySet<string>): string {
  const [sensitivity] = base.split(/[:-]/);
  const pairs = CATEGORIES * (CATEGORIES - 1);
  // The id is random, and a replay has the same.
  const start = Number.parseInt(podSandboxId.slice(0, 12), 16) % pairs;
  const level = (index: number): string => {
    const first = index % CATEGORIES;
    const second = (first + 1 + Math.floor(index / CATEGORIES)) % CATEGORIES;
    return `${sensitivity}:c${Math.min(first, second)},c${Math.max(first, second)}`;
  };
  // There are half a million pairs, more than there can be pods.
  for (let step = 0; step < pairs; step += 1) {
    const candidate = level((start + step) % pairs);
    if (!taken.has(candidate)) return candidate;
  }
  return level(start);
}

/** The labels of a new pod; `taken` are the levels of those that are there. `runsMachines`: its shim starts a machine. */
export function podLabels(
  contexts: SelinuxContexts,
  podSandboxId: string,
  config: PodSandboxConfig,
  taken: ReadonlySet<string>,
  runsMachines: boolean,
): SelinuxLabels {
  const asked = optionsOf(config);
  const base = parse(contexts.process).level;
  const level = asked.level || (base === undefined ? '' : levelFor(podSandboxId, base, taken));
  const type = asked.type || (runsMachines ? KVM_TYPE : '');
  return {
    process: sharesProcessesOrIpc(config) ? null : withOptions(contexts.process, { ...asked, type, level }),
    mount: withFileOptions(contexts.file, { ...asked, level }),
  };
}

export const levelOf = ({ mount }: SelinuxLabels): string => parse(mount).level ?? '';

/** Level that a container has of its own; '' for none. */
export const ownLevelOf = (config: ContainerConfig): string => optionsOf(config).level ?? '';

interface SpecLabels {
  /** undefined: the OCI runtime's own, as for privileged processes. */
  readonly process: string | undefined;
  /** undefined where nothing is labelled. */
  readonly mount: string | undefined;
}

/** The labels of one of the pod's tasks; `pod` is undefined where nothing is labelled. */
export function taskLabels(pod: SelinuxLabels | undefined, config: PodSandboxConfig | ContainerConfig): SpecLabels {
  if (pod === undefined) return { process: undefined, mount: undefined };
  const options = optionsOf(config);
  const isLabelled = pod.process !== null && !config.linux?.securityContext?.privileged;
  return {
    process: isLabelled ? withOptions(pod.process, options) : undefined,
    mount: withFileOptions(pod.mount, options),
  };
}

/**
 * Host paths that are to have the container's mount label: those that the config asks it for. None where the process has
 * no label: it can reach them anyway.
 * @throws {FailureError} InvalidField for a directory of the node's own
 */
export function pathsToRelabel(
  pod: SelinuxLabels | undefined,
  config: ContainerConfig,
  facts: ContainerFacts,
): readonly string[] {
  if (taskLabels(pod, config).process === undefined) return [];
  const asked = (config.mounts ?? []).flatMap(({ selinuxRelabel, hostPath }) => (selinuxRelabel ? [hostPath] : []));
  const paths = facts.mounts.flatMap(({ hostPath, realPath }) => (asked.includes(hostPath) ? [realPath] : []));
  const forbidden = paths.find((path) => DIRECTORIES_OF_NODE.includes(path));
  if (forbidden !== undefined)
    refuseField(
      RELABEL_FIELD,
      `is set for ${shown(forbidden)}, which others need as it is: mount a directory below it`,
    );
  return paths;
}

/**
 * The mount with all of its files labelled so; bind mounts show labels that are there. Quoted, because of the commas
 * between categories.
 */
export const labelledMount = <M extends Pick<Mount, 'type' | 'options'>>(mount: M, label: string | undefined): M =>
  label === undefined || mount.type === 'bind'
    ? mount
    : { ...mount, options: [...mount.options, `context="${label}"`] };
