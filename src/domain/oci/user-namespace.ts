/**
 * The user namespace of a pod: one run of the node's user and group ids that its processes know as 0, 1, 2 and so on.
 * Its containers have the same, and say so again in their own config: a kubelet that forgot it for one of them would
 * otherwise have a container with the node's root in a pod that nobody expects it in.
 */
import type { IdRange, PodUserNamespace } from '../model/user-namespace.ts';
import type { OciIdMapping } from '../model/oci.ts';
import { type IDMapping, type Mount, NamespaceMode, type PodSandboxConfig, type UserNamespace } from '../model/cri.ts';
import { sameJson } from '../values/json.ts';
import { refuseField, shown } from './refuse.ts';

export const NAMESPACE_FIELD = 'linux.security_context.namespace_options';
const USERNS_FIELD = `${NAMESPACE_FIELD}.userns_options`;

/** The kernel keeps the last of the 32-bit ids to mean "no change". */
const IDS = 0xffffffff;

const optionsOf = (config: PodSandboxConfig): UserNamespace | undefined =>
  config.linux?.securityContext?.namespaceOptions?.usernsOptions;

const isOwn = (options: UserNamespace | undefined): options is UserNamespace =>
  options !== undefined && (options.mode ?? NamespaceMode.POD) === NamespaceMode.POD;

const rangeOf = (mappings: readonly IDMapping[] | undefined): IdRange => {
  const [{ hostId = 0, length = 0 } = {}] = mappings ?? [];
  return { first: hostId, length };
};

/** null: the pod's users are the node's. The config was checked before. */
export function userNamespaceOf(config: PodSandboxConfig): PodUserNamespace | null {
  const options = optionsOf(config);
  return isOwn(options) ? { uids: rangeOf(options.uids), gids: rangeOf(options.gids) } : null;
}

/** As requests have it: absent where the pod's users are the node's. */
export function usersOf(config: PodSandboxConfig): { readonly users?: PodUserNamespace } {
  const users = userNamespaceOf(config);
  return users === null ? {} : { users };
}

export const hasOwnUsers = (config: PodSandboxConfig): boolean => isOwn(optionsOf(config));

/** The node's id for an id of a container; one that the container does not have is nobody's in it anyway. */
export const nodeIdOf = ({ first, length }: IdRange, id: number): number => (id < length ? first + id : id);

const ociMapping = ({ first, length }: IdRange): readonly OciIdMapping[] => [
  { containerID: 0, hostID: first, size: length },
];

/** For the `linux` part of a spec: nothing for a pod whose users are the node's. */
export function ociMappings(config: PodSandboxConfig): {
  readonly uidMappings?: readonly OciIdMapping[];
  readonly gidMappings?: readonly OciIdMapping[];
} {
  const users = userNamespaceOf(config);
  return users === null ? {} : { uidMappings: ociMapping(users.uids), gidMappings: ociMapping(users.gids) };
}

function checkMappings(field: string, mappings: readonly IDMapping[]): void {
  const [mapping, ...others] = mappings;
  if (mapping === undefined || others.length > 0)
    return refuseField(field, `has ${mappings.length} mappings: give exactly one`);
  const { containerId = 0, hostId = 0, length = 0 } = mapping;
  if (containerId !== 0) refuseField(`${field}.container_id`, `is ${containerId}: the mapping must begin with 0`);
  if (length < 1) refuseField(`${field}.length`, 'is 0: the mapping must have an id at least');
  if (hostId + length > IDS)
    refuseField(`${field}.length`, `is ${length}: with host_id ${hostId} it ends past ${IDS - 1}`);
}

/** What holds for pods and for containers alike. */
function checkOptions(options: UserNamespace | undefined): void {
  if (options === undefined) return;
  const { mode = NamespaceMode.POD, uids = [], gids = [] } = options;
  if (mode === NamespaceMode.NODE) {
    if (uids.length + gids.length > 0) refuseField(USERNS_FIELD, 'has mappings with mode NODE: leave them out');
    return;
  }
  if (mode !== NamespaceMode.POD) refuseField(`${USERNS_FIELD}.mode`, `is ${mode}: it must be POD or NODE`);
  checkMappings(`${USERNS_FIELD}.uids`, uids);
  checkMappings(`${USERNS_FIELD}.gids`, gids);
}

/** A namespace of the node's belongs to the node's users: in it, root of the pod would be nobody. */
export function checkPodUserNamespace(config: PodSandboxConfig): void {
  const options = optionsOf(config);
  checkOptions(options);
  if (!isOwn(options)) return;
  const { network, pid, ipc } = config.linux?.securityContext?.namespaceOptions ?? {};
  for (const [name, mode] of Object.entries({ network, pid, ipc }))
    if (mode === NamespaceMode.NODE)
      refuseField(
        `${NAMESPACE_FIELD}.${name}`,
        'is NODE in a pod with a user namespace: set userns_options.mode NODE too',
      );
}

/** Options that ask for nothing are the same as none. */
const asked = (options: UserNamespace | undefined) =>
  isOwn(options) ? { uids: options.uids ?? [], gids: options.gids ?? [] } : null;

/** @throws {FailureError} unless the container's options say what its pod's do */
export function checkContainerUserNamespace(options: UserNamespace | undefined, sandboxConfig: PodSandboxConfig): void {
  checkOptions(options);
  if (!sameJson(asked(options), asked(optionsOf(sandboxConfig))))
    refuseField(USERNS_FIELD, 'is not that of the pod: repeat the one of the PodSandboxConfig');
}

/** Files can be given to the pod's users only: no other ids are known in its containers. */
export function checkMountMappings(
  { containerPath = '', uidMappings = [], gidMappings = [] }: Mount,
  pod: PodSandboxConfig,
): void {
  if (uidMappings.length + gidMappings.length === 0) return;
  const at = shown(containerPath);
  const options = optionsOf(pod);
  if (!isOwn(options))
    return refuseField('mounts.uidMappings', `at ${at} is set in a pod without a user namespace: leave it empty`);
  for (const [name, mappings, ofPod] of [
    ['uidMappings', uidMappings, options.uids],
    ['gidMappings', gidMappings, options.gids],
  ] as const)
    if (!sameJson(mappings, ofPod ?? []))
      refuseField(`mounts.${name}`, `at ${at} is not the mapping of the pod's userns_options: repeat it`);
}
