/**
 * Makes the edits of CDI devices to the OCI spec of a container, in the order of the devices: later ones win over earlier
 * ones, and all of them over what the image and CRI say at the same place.
 */
import type { SpecSettings } from '../../model/spec-settings.ts';
import { isRenamed, mountedDevice } from '../devices.ts';
import { cleanPath, pathDepth } from '../paths.ts';
import type {
  OciDevice,
  OciDeviceCgroup,
  OciEnv,
  OciHook,
  OciHooks,
  OciIntelRdt,
  OciMount,
  OciProcess,
  OciSpec,
  SecretEnv,
} from '../../model/oci.ts';
import { type CdiEditsFact, type CdiHook, type CdiMount, type CdiNodeFact, HOOK_NAMES } from '../../model/cdi.ts';

const ALL_ACCESS = 'rwm';

const nameOf = (env: OciEnv): string => (typeof env === 'string' ? (env.split('=', 1)[0] ?? '') : env.name);

const withEnv = (base: readonly OciEnv[], added: readonly OciEnv[]): readonly OciEnv[] => [
  ...new Map([...base, ...added].map((env) => [nameOf(env), env])).values(),
];

/** A device that the spec file gives to nobody belongs to the user of the container. */
const deviceOf = (node: CdiNodeFact, { user }: OciProcess): OciDevice => ({
  path: cleanPath(node.path),
  type: node.type,
  major: node.major,
  minor: node.minor,
  ...(node.fileMode === undefined ? {} : { fileMode: node.fileMode }),
  uid: node.uid ?? user.uid,
  gid: node.gid ?? user.gid,
});

const ruleOf = ({ type, major, minor, permissions }: CdiNodeFact): readonly OciDeviceCgroup[] =>
  type === 'p' ? [] : [{ allow: true, type, major, minor, access: permissions || ALL_ACCESS }];

const renamed = ({ hostPath, path }: CdiNodeFact): readonly OciMount[] =>
  hostPath !== undefined && isRenamed(hostPath, path) ? [mountedDevice(hostPath, path)] : [];

const isBind = (options: readonly string[]): boolean => options.includes('bind') || options.includes('rbind');

const mountOf = ({ hostPath, containerPath, type, options }: CdiMount): OciMount => {
  const known = type ?? (isBind(options) ? 'bind' : undefined);
  return {
    destination: cleanPath(containerPath),
    ...(known === undefined ? {} : { type: known }),
    source: hostPath,
    options,
  };
};

/** None hides another: all are made again in the order of their depth. */
function withMounts(base: readonly OciMount[], added: readonly OciMount[]): readonly OciMount[] {
  if (added.length === 0) return base;
  const last = new Map(added.map((mount) => [mount.destination, mount]));
  const kept = base.filter(({ destination }) => !last.has(destination));
  return [...kept, ...last.values()].toSorted((a, b) => pathDepth(a.destination) - pathDepth(b.destination));
}

const hookOf = ({ path, args, env, timeout }: CdiHook<SecretEnv>): OciHook => ({
  path,
  ...(args === undefined ? {} : { args }),
  ...(env === undefined ? {} : { env }),
  ...(timeout === undefined ? {} : { timeout }),
});

function hooksOf(hooks: readonly CdiHook<SecretEnv>[]): OciHooks | undefined {
  if (hooks.length === 0) return undefined;
  const named = HOOK_NAMES.map(
    (name) => [name, hooks.filter(({ hookName }) => hookName === name).map(hookOf)] as const,
  );
  return Object.fromEntries(named.filter(([, some]) => some.length > 0));
}

/** Those that were there are run first. */
export const withHooks = (base: OciHooks = {}, added: OciHooks): OciHooks =>
  Object.fromEntries(
    HOOK_NAMES.map((name) => [name, [...(base[name] ?? []), ...(added[name] ?? [])]] as const).filter(
      ([, some]) => some.length > 0,
    ),
  );

/** The edits of all devices, put one behind the other. */
const each = <T>(
  edits: readonly CdiEditsFact[],
  pick: (edit: CdiEditsFact) => readonly T[] | undefined,
): readonly T[] => edits.flatMap((edit) => pick(edit) ?? []);

export function applyCdiEdits(
  spec: OciSpec,
  edits: readonly CdiEditsFact[],
  { mountedDevices = false }: Pick<SpecSettings, 'mountedDevices'>,
): OciSpec {
  const { process, linux } = spec;
  const nodes = each(edits, ({ deviceNodes }) => deviceNodes);
  const mountedNodes = mountedDevices && linux.uidMappings !== undefined ? nodes.flatMap(renamed) : [];
  const mounted = new Set(mountedNodes.map(({ destination }) => destination));
  const devices = new Map(
    [...(linux.devices ?? []), ...nodes.map((node) => deviceOf(node, process))]
      .filter(({ path }) => !mounted.has(path))
      .map((device) => [device.path, device]),
  );
  const gids = each(edits, ({ additionalGids }) => additionalGids).filter((gid) => gid !== 0);
  const netDevices = each(edits, (edit) => edit.netDevices);
  const hooks = hooksOf(each(edits, (edit) => edit.hooks));
  const intelRdt: OciIntelRdt | undefined = edits.findLast((edit) => edit.intelRdt !== undefined)?.intelRdt;
  return {
    ...spec,
    process: {
      ...process,
      user: { ...process.user, additionalGids: [...new Set([...(process.user.additionalGids ?? []), ...gids])] },
      env: withEnv(
        process.env,
        each(edits, ({ env }) => env),
      ),
    },
    mounts: withMounts(spec.mounts, [...each(edits, ({ mounts }) => mounts).map(mountOf), ...mountedNodes]),
    ...(hooks === undefined ? {} : { hooks: withHooks(spec.hooks, hooks) }),
    linux: {
      ...linux,
      resources: { ...linux.resources, devices: [...(linux.resources.devices ?? []), ...nodes.flatMap(ruleOf)] },
      ...(devices.size === 0 ? {} : { devices: [...devices.values()] }),
      ...(intelRdt === undefined ? {} : { intelRdt }),
      ...(netDevices.length === 0
        ? {}
        : {
            netDevices: Object.fromEntries(
              netDevices.map(({ hostInterfaceName, name }) => [hostInterfaceName, { name }]),
            ),
          }),
    },
  };
}
