/**
 * From the parsed content of a CDI spec file to a CdiSpec. The authors of such files are trusted with the node, but
 * they make mistakes: a field that is not known, or newer than the version the file says it has, is refused.
 */
import { FailureError } from '../../model/errors.ts';
import { shown } from '../refuse.ts';
import type { JsonObject } from '../../values/json.ts';
import { type Read, shapes } from '../../values/shape.ts';
import { DEVICE_PART, KIND_PART } from './names.ts';
import {
  type CdiDevice,
  type CdiDeviceNode,
  type CdiEdits,
  type CdiHook,
  type CdiIntelRdt,
  type CdiMount,
  type CdiNetDevice,
  type CdiSpec,
  type DeviceType,
  HOOK_NAMES,
  type HookName,
} from '../../model/cdi.ts';

const MAX_KIND_NAME = 63;
const MAX_DEVICES = 10_000;
const MAX_ID = 0xfffffffe;
const MAX_DEVICE_NUMBER = 0xffffffff;
const MAX_FILE_MODE = 0o177777;
const MAX_HOOK_TIMEOUT_S = 86_400;

const KIND = new RegExp(`^${KIND_PART.source}/${KIND_PART.source}$`);
const DEVICE = new RegExp(`^${DEVICE_PART.source}$`);
/** No NUL: no system call can be given one. */
const PLAIN = /^[^\0]+$/;
const ANY_PLAIN = /^[^\0]*$/;
const ABSOLUTE = /^\/[^\0]*$/;
const ENV = /^[^=\0]+=[^\0]*$/;
const INTERFACE = /^[^\0/\s]{1,15}$/;

/** Released versions, oldest first. */
const VERSIONS = ['0.1.0', '0.2.0', '0.3.0', '0.4.0', '0.5.0', '0.6.0', '0.7.0', '0.8.0', '1.0.0', '1.1.0'];

const isPresent = (value: unknown): boolean => value !== undefined && (!Array.isArray(value) || value.length > 0);

/** What came with which version: a file that uses it has to say that version, or a later one. */
const NEEDS: readonly (readonly [version: string, what: string, uses: (spec: CdiSpec, file: JsonObject) => boolean])[] =
  [
    ['0.4.0', 'mounts.type', (spec) => anyEdits(spec, ({ mounts = [] }) => mounts.some(({ type }) => type))],
    ['0.5.0', 'names that begin with a digit', ({ devices }) => devices.some(({ name }) => /^\d/.test(name))],
    [
      '0.5.0',
      'deviceNodes.hostPath',
      (spec) => anyEdits(spec, ({ deviceNodes = [] }) => deviceNodes.some(({ hostPath }) => hostPath)),
    ],
    ['0.6.0', 'annotations', (_spec, file) => JSON.stringify(file).includes('"annotations":{"')],
    ['0.6.0', 'a dot in the class of its kind', ({ kind }) => (kind.split('/')[1] ?? '').includes('.')],
    ['0.7.0', 'intelRdt', (spec) => anyEdits(spec, ({ intelRdt }) => isPresent(intelRdt))],
    ['0.7.0', 'additionalGids', (spec) => anyEdits(spec, ({ additionalGids }) => isPresent(additionalGids))],
    ['1.1.0', 'netDevices', (spec) => anyEdits(spec, ({ netDevices }) => isPresent(netDevices))],
    [
      '1.1.0',
      'intelRdt.schemata or enableMonitoring',
      (spec) => anyEdits(spec, ({ intelRdt }) => isPresent(intelRdt?.schemata) || intelRdt?.enableMonitoring === true),
    ],
  ];

const anyEdits = (spec: CdiSpec, uses: (edits: CdiEdits) => unknown): boolean =>
  [spec.containerEdits, ...spec.devices.map(({ containerEdits }) => containerEdits)].some((edits) => uses(edits));

const isEmpty = (edits: CdiEdits): boolean => !Object.values(edits).some(isPresent);

/** Values as they occur in many places. */
const valuesOf = (bad: (problem: string) => never) => {
  const shape = shapes(bad);
  const { list, text, whole } = shape;
  const optional = <T>(fields: JsonObject, key: string, at: string, read: Read<T>): { [K in string]?: T } =>
    fields[key] === undefined ? {} : { [key]: read(fields[key], `${at}.${key}`) };

  const absolute: Read<string> = (value, name) => text(value, name, ABSOLUTE, 'an absolute path');
  const plain: Read<string> = (value, name) => text(value, name, PLAIN, 'text that is not empty');
  const anyPlain: Read<string> = (value, name) => text(value, name, ANY_PLAIN, 'text');
  const env: Read<string> = (value, name) => text(value, name, ENV, 'like NAME=value');
  const id: Read<number> = (value, name) => whole(value, name, 0, MAX_ID);
  const deviceNumber: Read<number> = (value, name) => whole(value, name, 0, MAX_DEVICE_NUMBER);
  const interfaceName: Read<string> = (value, name) => text(value, name, INTERFACE, 'the name of a network interface');
  const lines =
    (item: Read<string>): Read<readonly string[]> =>
    (value, name) =>
      list(value, name, item);

  return { ...shape, bad, optional, absolute, plain, anyPlain, env, id, deviceNumber, interfaceName, lines };
};

type Values = ReturnType<typeof valuesOf>;

const deviceReaders = ({ object, text, whole, absolute, id, deviceNumber, interfaceName, optional }: Values) => {
  // "u" is an unbuffered character device: the same.
  const deviceType: Read<DeviceType> = (value, name) =>
    text(value, name, /^[bcup]$/, 'b, c, u or p').replace('u', 'c') as DeviceType;

  const deviceNode: Read<CdiDeviceNode> = (value, at) => {
    const keys = ['path', 'hostPath', 'type', 'major', 'minor', 'fileMode', 'permissions', 'uid', 'gid'];
    const fields = object(value, at, keys);
    return {
      path: absolute(fields['path'], `${at}.path`),
      ...optional(fields, 'hostPath', at, absolute),
      ...optional(fields, 'type', at, deviceType),
      ...optional(fields, 'major', at, deviceNumber),
      ...optional(fields, 'minor', at, deviceNumber),
      ...optional(fields, 'fileMode', at, (mode, name) => whole(mode, name, 0, MAX_FILE_MODE)),
      ...optional(fields, 'permissions', at, (some, name) => text(some, name, /^[rwm]*$/, 'some of r, w and m')),
      ...optional(fields, 'uid', at, id),
      ...optional(fields, 'gid', at, id),
    };
  };
  const netDevice: Read<CdiNetDevice> = (value, at) => {
    const fields = object(value, at, ['hostInterfaceName', 'name']);
    return {
      hostInterfaceName: interfaceName(fields['hostInterfaceName'], `${at}.hostInterfaceName`),
      name: interfaceName(fields['name'], `${at}.name`),
    };
  };

  return { deviceNode, netDevice };
};

const mountReaders = ({ object, list, text, whole, absolute, plain, anyPlain, env, lines, optional }: Values) => {
  const mount: Read<CdiMount> = (value, at) => {
    const fields = object(value, at, ['hostPath', 'containerPath', 'type', 'options']);
    return {
      hostPath: plain(fields['hostPath'], `${at}.hostPath`),
      containerPath: absolute(fields['containerPath'], `${at}.containerPath`),
      ...optional(fields, 'type', at, plain),
      options: list(fields['options'] ?? [], `${at}.options`, plain),
    };
  };
  const hook: Read<CdiHook<string>> = (value, at) => {
    const fields = object(value, at, ['hookName', 'path', 'args', 'env', 'timeout']);
    const isName = new RegExp(`^(?:${HOOK_NAMES.join('|')})$`);
    return {
      hookName: text(fields['hookName'], `${at}.hookName`, isName, `one of ${HOOK_NAMES.join(', ')}`) as HookName,
      path: absolute(fields['path'], `${at}.path`),
      ...optional(fields, 'args', at, lines(anyPlain)),
      ...optional(fields, 'env', at, lines(env)),
      ...optional(fields, 'timeout', at, (seconds, name) => whole(seconds, name, 1, MAX_HOOK_TIMEOUT_S)),
    };
  };

  return { mount, hook };
};

const editsReader = (values: Values): Read<CdiEdits> => {
  const { object, list, text, flag, plain, env, id, lines, optional } = values;
  const { deviceNode, netDevice } = deviceReaders(values);
  const { mount, hook } = mountReaders(values);
  const intelRdt: Read<CdiIntelRdt> = (value, at) => {
    const fields = object(value, at, ['closID', 'l3CacheSchema', 'memBwSchema', 'schemata', 'enableMonitoring']);
    const closID: Read<string> = (one, name) =>
      text(one, name, /^(?:\/|(?!\.{1,2}$)[^/\n\0]{1,255})$/, 'a file name, or "/"');
    return {
      ...optional(fields, 'closID', at, closID),
      ...optional(fields, 'l3CacheSchema', at, plain),
      ...optional(fields, 'memBwSchema', at, plain),
      ...optional(fields, 'schemata', at, lines(plain)),
      ...optional(fields, 'enableMonitoring', at, flag),
    };
  };
  return (value, at) => {
    const keys = ['env', 'deviceNodes', 'netDevices', 'hooks', 'mounts', 'intelRdt', 'additionalGids'];
    const fields = object(value, at, keys);
    const found: CdiEdits = {
      ...optional(fields, 'env', at, lines(env)),
      ...optional(fields, 'deviceNodes', at, (nodes, name) => list(nodes, name, deviceNode)),
      ...optional(fields, 'netDevices', at, (devices, name) => list(devices, name, netDevice)),
      ...optional(fields, 'hooks', at, (hooks, name) => list(hooks, name, hook)),
      ...optional(fields, 'mounts', at, (mounts, name) => list(mounts, name, mount)),
      ...optional(fields, 'intelRdt', at, intelRdt),
      ...optional(fields, 'additionalGids', at, (gids, name) => list(gids, name, id)),
    };
    for (const key of ['hostInterfaceName', 'name'] as const) {
      const names = (found.netDevices ?? []).map((device) => device[key]);
      if (new Set(names).size < names.length) values.bad(`${at}.netDevices has the same ${key} twice`);
    }
    return found;
  };
};

/** @throws {FailureError} HostFailed, saying what of the file at `path` is wrong */
export function parseCdiSpec(content: unknown, path: string): CdiSpec {
  const bad = (problem: string): never => {
    throw new FailureError('HostFailed', `the CDI spec ${path}: ${problem}`);
  };
  const values = valuesOf(bad);
  const { object, list, text, plain, anyPlain, optional } = values;
  const edits = editsReader(values);
  const annotations: Read<JsonObject> = (value, at) => {
    const fields = object(value, at, Object.keys(value ?? {}));
    for (const [key, one] of Object.entries(fields)) anyPlain(one, `${at}.${key}`);
    return fields;
  };
  const device: Read<CdiDevice> = (value, at) => {
    const fields = object(value, at, ['name', 'annotations', 'containerEdits']);
    optional(fields, 'annotations', at, annotations);
    const containerEdits = edits(fields['containerEdits'] ?? {}, `${at}.containerEdits`);
    if (isEmpty(containerEdits)) bad(`${at}.containerEdits is empty: the device would change nothing`);
    return { name: text(fields['name'], `${at}.name`, DEVICE, 'the name of a device'), containerEdits };
  };

  const file = object(content, 'it', ['cdiVersion', 'kind', 'annotations', 'devices', 'containerEdits']);
  const version = plain(file['cdiVersion'], 'cdiVersion').replace(/^v/, '');
  if (!VERSIONS.includes(version)) bad(`cdiVersion is ${shown(version)}: it must be one of ${VERSIONS.join(', ')}`);
  optional(file, 'annotations', 'it', annotations);
  const kind = text(file['kind'], 'kind', KIND, 'like vendor.com/class');
  if ((kind.split('/')[1] ?? '').length > MAX_KIND_NAME)
    bad(`kind has a class of more than ${MAX_KIND_NAME} characters`);
  if (Array.isArray(file['devices']) && file['devices'].length > MAX_DEVICES)
    bad(`devices has more than ${MAX_DEVICES} entries`);
  const devices = list(file['devices'], 'devices', device);
  if (devices.length === 0) bad('devices is empty');
  const names = devices.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) bad(`devices has ${shown(twice)} twice`);
  const spec = { kind, devices, containerEdits: edits(file['containerEdits'] ?? {}, 'containerEdits') };
  for (const [needed, what, uses] of NEEDS)
    if (VERSIONS.indexOf(needed) > VERSIONS.indexOf(version) && uses(spec, file))
      bad(`cdiVersion is ${version}, but ${what} came with ${needed}: say so`);
  return spec;
}
