/**
 * The OCI spec that a runtime handler's containers begin with: read from a file of the admin's, and put below what CRI and
 * scribe say. Kept is what a container can have without CRI asking for it; what only scribe or CRI can know may stand in
 * the file, since tools that print specs write it, and counts for nothing.
 */
import type { BaseSpec } from '../model/base-spec.ts';
import type { JsonObject } from '../values/json.ts';
import { type Read, shapes } from '../values/shape.ts';
import { checkCapabilityNames } from './capabilities.ts';
import { DEV } from './devices.ts';
import { cleanPath, pathDepth } from './paths.ts';
import { isNoRlimit, NO_RLIMIT } from './rlimits.ts';
import type {
  OciDevice,
  OciDeviceCgroup,
  OciHook,
  OciHooks,
  OciMount,
  OciResources,
  OciRlimit,
  OciRootfsPropagation,
  OciSpec,
} from '../model/oci.ts';

const HOOK_NAMES = ['prestart', 'createRuntime', 'createContainer', 'startContainer', 'poststart', 'poststop'] as const;
const CAPABILITY_SETS = ['bounding', 'effective', 'permitted', 'inheritable', 'ambient'];

/** What is said by scribe, the pod or the image alone. */
const passedOver = {
  spec: ['ociVersion', 'root', 'hostname', 'domainname'],
  process: ['terminal', 'consoleSize', 'user', 'args', 'cwd', 'oomScoreAdj', 'apparmorProfile', 'selinuxLabel'],
  linux: [
    'namespaces',
    'cgroupsPath',
    'seccomp',
    'maskedPaths',
    'readonlyPaths',
    'mountLabel',
    'uidMappings',
    'gidMappings',
  ],
} as const;

const MAX_ID = 0xfffffffe;
const MAX_DEVICE_NUMBER = 0xffffffff;
const MAX_FILE_MODE = 0o177777;
const MAX_HOOK_TIMEOUT_S = 86_400;
const MOST = Number.MAX_SAFE_INTEGER;

type Bad = (problem: string) => never;

/** Values as they occur in many places. */
const valuesOf = (bad: Bad) => {
  const shape = shapes(bad);
  const { object, list, text, whole } = shape;
  const optional = <T>(fields: JsonObject, key: string, at: string, read: Read<T>): { [K in string]?: T } =>
    fields[key] === undefined ? {} : { [key]: read(fields[key], at === '' ? key : `${at}.${key}`) };
  const anyObject: Read<JsonObject> = (value, at) => object(value, at, Object.keys(value ?? {}));

  const plain: Read<string> = (value, at) => text(value, at, /^[^\0]*$/, 'text');
  const absolute: Read<string> = (value, at) => text(value, at, /^\/[^\0]*$/, 'an absolute path');
  const env: Read<string> = (value, at) => text(value, at, /^[^=\0]+=[^\0]*$/, 'like NAME=value');
  const limit: Read<number> = (value, at) => whole(value, at, -1, MOST);
  const natural: Read<number> = (value, at) => whole(value, at, 0, MOST);
  const id: Read<number> = (value, at) => whole(value, at, 0, MAX_ID);
  const deviceNumber: Read<number> = (value, at) => whole(value, at, 0, MAX_DEVICE_NUMBER);
  const lines =
    (item: Read<string>): Read<readonly string[]> =>
    (value, at) =>
      list(value, at, item);
  const texts: Read<Readonly<Record<string, string>>> = (value, at) =>
    Object.fromEntries(Object.entries(anyObject(value, at)).map(([key, one]) => [key, plain(one, `${at}.${key}`)]));
  const flat =
    (readers: Readonly<Record<string, Read<unknown>>>): Read<object> =>
    (value, at) => {
      const fields = object(value, at, Object.keys(readers));
      return Object.assign(
        {},
        ...Object.entries(readers).map(([key, read]) => optional(fields, key, at, read)),
      ) as object;
    };

  return { ...shape, optional, plain, absolute, env, limit, natural, id, deviceNumber, lines, texts, flat };
};

type Values = ReturnType<typeof valuesOf>;

const processReaders = ({ object, list, text, natural, lines, optional }: Values, bad: Bad) => {
  const rlimit: Read<OciRlimit> = (value, at) => {
    const fields = object(value, at, ['type', 'soft', 'hard']);
    const limit: Read<number> = (one, name) => (isNoRlimit(one) ? NO_RLIMIT : natural(one, name));
    const soft = limit(fields['soft'], `${at}.soft`);
    const hard = limit(fields['hard'], `${at}.hard`);
    if (soft > hard) bad(`${at}.soft is ${soft}, more than ${at}.hard`);
    return { type: text(fields['type'], `${at}.type`, /^RLIMIT_[A-Z]+$/, 'like RLIMIT_NOFILE'), soft, hard };
  };
  const capability: Read<string> = (value, at) => {
    const named = text(value, at, /^CAP_[A-Z_]+$/, 'like CAP_NET_RAW');
    return checkCapabilityNames([named]) ? named : bad(`${at} is ${named}, which is no capability`);
  };
  const capabilities: Read<readonly string[]> = (value, at) => {
    const sets = object(value, at, CAPABILITY_SETS);
    for (const name of CAPABILITY_SETS) optional(sets, name, at, lines(capability));
    return list(sets['bounding'] ?? [], `${at}.bounding`, capability);
  };

  return { rlimit, capabilities };
};

const mountReaders = ({ object, list, whole, plain, absolute, env, lines, optional }: Values) => {
  const mount: Read<OciMount> = (value, at) => {
    const fields = object(value, at, ['destination', 'type', 'source', 'options']);
    const type = fields['type'] === undefined ? undefined : plain(fields['type'], `${at}.type`);
    return {
      destination: cleanPath(absolute(fields['destination'], `${at}.destination`)),
      ...(type === undefined ? {} : { type }),
      source: plain(fields['source'] ?? type, `${at}.source`),
      options: list(fields['options'] ?? [], `${at}.options`, plain),
    };
  };
  const hook: Read<OciHook> = (value, at) => {
    const fields = object(value, at, ['path', 'args', 'env', 'timeout']);
    return {
      path: absolute(fields['path'], `${at}.path`),
      ...optional(fields, 'args', at, lines(plain)),
      ...optional(fields, 'env', at, lines(env)),
      ...optional(fields, 'timeout', at, (seconds, name) => whole(seconds, name, 1, MAX_HOOK_TIMEOUT_S)),
    };
  };
  const hooks: Read<OciHooks> = (value, at) => {
    const fields = object(value, at, HOOK_NAMES);
    const each = HOOK_NAMES.map((name) => optional(fields, name, at, (some, where) => list(some, where, hook)));
    return Object.assign({}, ...each) as OciHooks;
  };

  return { mount, hooks };
};

const linuxReaders = (values: Values) => {
  const { object, list, text, whole, flag, optional, plain, absolute, limit, natural, id } = values;
  const { deviceNumber, lines, texts, flat } = values;
  const device: Read<OciDevice> = (value, at) => {
    const fields = object(value, at, ['path', 'type', 'major', 'minor', 'fileMode', 'uid', 'gid']);
    const type = text(fields['type'], `${at}.type`, /^[bcup]$/, 'b, c, u or p').replace('u', 'c') as OciDevice['type'];
    return {
      path: cleanPath(absolute(fields['path'], `${at}.path`)),
      type,
      major: deviceNumber(fields['major'] ?? 0, `${at}.major`),
      minor: deviceNumber(fields['minor'] ?? 0, `${at}.minor`),
      ...optional(fields, 'fileMode', at, (mode, name) => whole(mode, name, 0, MAX_FILE_MODE)),
      ...optional(fields, 'uid', at, id),
      ...optional(fields, 'gid', at, id),
    };
  };
  const deviceRule: Read<OciDeviceCgroup> = (value, at) => {
    const fields = object(value, at, ['allow', 'type', 'major', 'minor', 'access']);
    return {
      allow: flag(fields['allow'], `${at}.allow`),
      ...optional(fields, 'type', at, (type, name) => text(type, name, /^[abc]$/, 'a, b or c') as 'a' | 'b' | 'c'),
      ...optional(fields, 'major', at, limit),
      ...optional(fields, 'minor', at, limit),
      access: text(fields['access'] ?? 'rwm', `${at}.access`, /^[rwm]*$/, 'some of r, w and m'),
    };
  };
  const resources = flat({
    devices: (value, at) => list(value, at, deviceRule),
    memory: flat({ limit, reservation: limit, swap: limit, swappiness: natural, disableOOMKiller: flag }),
    cpu: flat({
      shares: natural,
      quota: limit,
      burst: natural,
      period: natural,
      cpus: plain,
      mems: plain,
      idle: limit,
    }),
    pids: flat({ limit }),
    hugepageLimits: (value, at) => list(value, at, flat({ pageSize: plain, limit: natural })),
    unified: texts,
  });
  const intelRdt = flat({
    closID: plain,
    l3CacheSchema: plain,
    memBwSchema: plain,
    schemata: lines(plain),
    enableMonitoring: flag,
  });
  const propagation: Read<OciRootfsPropagation> = (value, at) =>
    text(
      value,
      at,
      /^r?(private|slave|shared)$/,
      'private, slave, shared, or one of these after r',
    ) as OciRootfsPropagation;

  return { device, resources, intelRdt, propagation };
};

/** `bad` is told what is wrong with the parsed content of the file, and must throw. */
export function parseBaseSpec(content: unknown, bad: (problem: string) => never): BaseSpec {
  const values = valuesOf(bad);
  const { object, list, flag, env, lines, texts, optional } = values;
  const { rlimit, capabilities } = processReaders(values, bad);
  const { mount, hooks } = mountReaders(values);
  const { device, resources, intelRdt, propagation } = linuxReaders(values);
  const spec = object(content, 'it', [...passedOver.spec, 'process', 'mounts', 'hooks', 'annotations', 'linux']);
  const processKeys = ['env', 'capabilities', 'noNewPrivileges', 'rlimits'];
  const process = object(spec['process'] ?? {}, 'process', [...passedOver.process, ...processKeys]);
  const linuxKeys = ['sysctl', 'resources', 'devices', 'rootfsPropagation', 'intelRdt'];
  const linux = object(spec['linux'] ?? {}, 'linux', [...passedOver.linux, ...linuxKeys]);
  const { resources: limits } = optional(linux, 'resources', 'linux', resources) as { resources?: OciResources };
  const { devices: rules = [], ...otherLimits } = limits ?? {};
  const allowed = rules.filter(({ allow, type }) => allow && type !== undefined && type !== 'a');
  return {
    ...optional(process, 'env', 'process', lines(env)),
    ...optional(process, 'capabilities', 'process', capabilities),
    ...optional(process, 'noNewPrivileges', 'process', flag),
    ...optional(process, 'rlimits', 'process', (value, at) => list(value, at, rlimit)),
    ...optional(spec, 'mounts', '', (value, at) => list(value, at, mount)),
    ...optional(spec, 'hooks', '', hooks),
    ...optional(spec, 'annotations', '', texts),
    ...optional(linux, 'sysctl', 'linux', texts),
    ...(Object.keys(otherLimits).length === 0 ? {} : { resources: otherLimits }),
    ...(allowed.length === 0 ? {} : { deviceRules: allowed }),
    ...optional(linux, 'devices', 'linux', (value, at) => list(value, at, device)),
    ...optional(linux, 'rootfsPropagation', 'linux', propagation),
    ...optional(linux, 'intelRdt', 'linux', intelRdt),
  };
}

/** Limits of both, what is asked for last: one by one within memory, cpu and the like. */
function withLimits(base: OciResources, asked: OciResources): OciResources {
  const pages = [...(base.hugepageLimits ?? []), ...(asked.hugepageLimits ?? [])];
  const both = (key: 'memory' | 'cpu' | 'unified'): Partial<OciResources> =>
    base[key] === undefined ? {} : { [key]: { ...base[key], ...asked[key] } };
  return {
    ...base,
    ...asked,
    ...both('memory'),
    ...both('cpu'),
    ...both('unified'),
    ...(pages.length === 0
      ? {}
      : { hugepageLimits: [...new Map(pages.map((page) => [page.pageSize, page])).values()] }),
  };
}

/** Base mounts where nothing else is mounted, none hidden by another. A /dev of the pod's own is left as it is. */
function withMounts(base: readonly OciMount[], own: readonly OciMount[]): readonly OciMount[] {
  const taken = new Set(own.map(({ destination }) => destination));
  const hasOwnDev = own.some(({ destination, type }) => destination === DEV && type === 'bind');
  const free = base.filter(
    ({ destination }) => !taken.has(destination) && !(hasOwnDev && destination.startsWith(`${DEV}/`)),
  );
  if (free.length === 0) return own;
  return [...own, ...free].toSorted((a, b) => pathDepth(a.destination) - pathDepth(b.destination));
}

/** Puts the spec of a container over what its runtime handler's containers begin with; env and capabilities are in it. */
export function overBaseSpec(base: BaseSpec, spec: OciSpec): OciSpec {
  const { process, linux } = spec;
  const devices = [...(base.devices ?? []), ...(linux.devices ?? [])];
  const limits = withLimits(base.resources ?? {}, linux.resources);
  const rules = [...(linux.resources.devices ?? []), ...(base.deviceRules ?? [])];
  return {
    ...spec,
    process: {
      ...process,
      noNewPrivileges: process.noNewPrivileges === true || base.noNewPrivileges === true,
      ...(base.rlimits === undefined ? {} : { rlimits: base.rlimits }),
    },
    mounts: withMounts(base.mounts ?? [], spec.mounts),
    ...(base.hooks === undefined ? {} : { hooks: base.hooks }),
    annotations: { ...base.annotations, ...spec.annotations },
    linux: {
      ...linux,
      resources: { ...limits, ...(rules.length === 0 ? {} : { devices: rules }) },
      ...(devices.length === 0 ? {} : { devices: [...new Map(devices.map((one) => [one.path, one])).values()] }),
      ...(base.sysctl === undefined ? {} : { sysctl: { ...base.sysctl, ...linux.sysctl } }),
      ...(base.rootfsPropagation === undefined
        ? {}
        : { rootfsPropagation: linux.rootfsPropagation ?? base.rootfsPropagation }),
      ...(base.intelRdt === undefined ? {} : { intelRdt: linux.intelRdt ?? base.intelRdt }),
    },
  };
}
