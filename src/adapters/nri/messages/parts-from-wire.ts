/**
 * Parts of adjustments as plugins sent them, in the domain's words. What a key is marked with stays, and what is taken away
 * has nothing but its key.
 */
import type {
  NriIoPriority,
  NriMemoryPolicy,
  NriNamespace,
  NriRdt,
  NriRlimit,
  NriScheduler,
} from '../../../domain/model/nri.ts';
import type {
  OciDevice,
  OciEnv,
  OciHook,
  OciHooks,
  OciMount,
  OciSeccomp,
  OciSeccompArg,
  OciSyscall,
} from '../../../domain/model/oci.ts';
import { bareKey, isMarked } from '../../../domain/nri/marks.ts';
import { shown } from '../../../domain/oci/refuse.ts';
import * as wire from '../../../wire/nri/api.ts';
import {
  absolutePath,
  fileName,
  list,
  MAX_UINT32,
  MAX_UINT64,
  message,
  named,
  optionalText,
  present,
  refuseAnswer,
  text,
  whole,
  wholeNumber,
} from './reading.ts';
import { secretEnv, type TokenOf } from './secrets.ts';

const ZERO = '0';

export function mountFromWire(at: string, { destination, type, source, options }: wire.Mount): OciMount {
  absolutePath(`${at}.destination`, bareKey(destination));
  return {
    destination,
    ...(type === '' ? {} : { type: text(`${at}.type`, type) }),
    source: text(`${at}.source`, source),
    options: list(`${at}.options`, options, text) ?? [],
  };
}

function checkedName(field: string, name: string): string {
  if (name === '' || name.includes('=')) refuseAnswer(field, `is ${shown(name)}: it must be the name of a variable`);
  return text(field, name);
}

export function envFromWire(at: string, { key, value }: wire.KeyValue, tokenOf: TokenOf): OciEnv {
  checkedName(`${at}.key`, bareKey(key));
  return isMarked(key) ? key : secretEnv(key, text(`${at}.value`, value), tokenOf);
}

/** "NAME=value"; a name alone is no secret. */
function hookEnv(at: string, entry: string, tokenOf: TokenOf): OciEnv {
  const equals = text(at, entry).indexOf('=');
  return equals < 0 ? entry : secretEnv(checkedName(at, entry.slice(0, equals)), entry.slice(equals + 1), tokenOf);
}

/** A day, in seconds: longer than anybody waits. */
const MAX_TIMEOUT = 86_400n;

function hookFromWire(at: string, { path, args, env, timeout }: wire.Hook, tokenOf: TokenOf): OciHook {
  const rest = present<Omit<OciHook, 'path'>>({
    args: list(`${at}.args`, args, text),
    env: list(`${at}.env`, env, (field, entry) => hookEnv(field, entry, tokenOf)),
    // OCI knows no timeout of 0, which would be none at all.
    timeout: message(timeout, ({ value }) => wholeNumber(`${at}.timeout`, value, 0n, MAX_TIMEOUT) || undefined),
  });
  return { path: absolutePath(`${at}.path`, path), ...rest };
}

export function hooksFromWire(at: string, hooks: wire.Hooks, tokenOf: TokenOf): OciHooks | undefined {
  const convert = (name: string, some: readonly wire.Hook[]): readonly OciHook[] | undefined =>
    list(`${at}.${name}`, some, (field, hook) => hookFromWire(field, hook, tokenOf));
  return present<OciHooks>({
    prestart: convert('prestart', hooks.prestart),
    createRuntime: convert('create_runtime', hooks.createRuntime),
    createContainer: convert('create_container', hooks.createContainer),
    startContainer: convert('start_container', hooks.startContainer),
    poststart: convert('poststart', hooks.poststart),
    poststop: convert('poststop', hooks.poststop),
  });
}

const DEVICE_TYPES = { c: 'c', u: 'c', b: 'b', p: 'p' } as const;

/** One that is taken away is nothing but its path. */
const REMOVED = { type: 'c', major: 0, minor: 0 } as const;

const MAX_FILE_MODE = 0o7777;

export function deviceFromWire(at: string, device: wire.LinuxDevice): OciDevice {
  const { path } = device;
  absolutePath(`${at}.path`, bareKey(path));
  if (isMarked(path)) return { path, ...REMOVED };
  const type = (DEVICE_TYPES as Readonly<Record<string, OciDevice['type']>>)[device.type];
  if (type === undefined) return refuseAnswer(`${at}.type`, `is ${shown(device.type)}: it must be c, b or p`);
  const mode = message(device.fileMode, ({ value }) => value & MAX_FILE_MODE);
  const rest = { fileMode: mode, uid: device.uid?.value, gid: device.gid?.value };
  return {
    path,
    type,
    major: wholeNumber(`${at}.major`, device.major, 0n, MAX_UINT32),
    minor: wholeNumber(`${at}.minor`, device.minor, 0n, MAX_UINT32),
    ...present<Pick<OciDevice, 'fileMode' | 'uid' | 'gid'>>(rest),
  };
}

export const namespaceFromWire = (at: string, { type, path }: wire.LinuxNamespace): NriNamespace => ({
  type: text(`${at}.type`, type),
  ...(path === '' ? {} : { path: absolutePath(`${at}.path`, path) }),
});

export function rlimitFromWire(at: string, { type, hard, soft }: wire.POSIXRlimit): NriRlimit {
  if (!/^RLIMIT_[A-Z]{1,20}$/.test(type))
    refuseAnswer(`${at}.type`, `is ${shown(type)}: it must be like RLIMIT_NOFILE`);
  const most = BigInt(whole(`${at}.hard`, hard, 0n, MAX_UINT64));
  return { type, hard, soft: whole(`${at}.soft`, soft, 0n, most) };
}

function seccompArg(at: string, { index, value, valueTwo, op }: wire.LinuxSeccompArg): OciSeccompArg {
  const second = wholeNumber(`${at}.value_two`, valueTwo, 0n, MAX_UINT64);
  return {
    index,
    // A rule for another value than the one that was meant would protect nobody.
    value: wholeNumber(`${at}.value`, value, 0n, MAX_UINT64),
    ...(second === 0 ? {} : { valueTwo: second }),
    op: text(`${at}.op`, op),
  };
}

function syscall(at: string, { names, action, errnoRet, args }: wire.LinuxSyscall): OciSyscall {
  const rest = { errnoRet: errnoRet?.value, args: list(`${at}.args`, args, seccompArg) };
  return {
    names: list(`${at}.names`, names, text) ?? [],
    action: text(`${at}.action`, action),
    ...present<Pick<OciSyscall, 'errnoRet' | 'args'>>(rest),
  };
}

export const seccompFromWire = (at: string, seccomp: wire.LinuxSeccomp): OciSeccomp => ({
  defaultAction: text(`${at}.default_action`, seccomp.defaultAction),
  ...present<Omit<OciSeccomp, 'defaultAction'>>({
    defaultErrnoRet: seccomp.defaultErrno?.value,
    architectures: list(`${at}.architectures`, seccomp.architectures, text),
    flags: list(`${at}.flags`, seccomp.flags, text),
    listenerPath: optionalText(`${at}.listener_path`, seccomp.listenerPath),
    listenerMetadata: optionalText(`${at}.listener_metadata`, seccomp.listenerMetadata),
    syscalls: list(`${at}.syscalls`, seccomp.syscalls, syscall),
  }),
});

const MAX_IO_PRIORITY = 7;

export function ioPriorityFromWire(at: string, { class: value, priority }: wire.LinuxIOPriority): NriIoPriority {
  if (priority < 0 || priority > MAX_IO_PRIORITY)
    refuseAnswer(`${at}.priority`, `is ${priority}: it must be from 0 to ${MAX_IO_PRIORITY}`);
  return { class: named(`${at}.class`, wire.IOPrioClass, value), priority };
}

export function schedulerFromWire(at: string, scheduler: wire.LinuxScheduler): NriScheduler {
  const time = (name: string, value: string): string | undefined =>
    value === ZERO ? undefined : whole(`${at}.${name}`, value, 0n, MAX_UINT64);
  return {
    policy: named(`${at}.policy`, wire.LinuxSchedulerPolicy, scheduler.policy),
    ...present<Omit<NriScheduler, 'policy'>>({
      nice: scheduler.nice || undefined,
      priority: scheduler.priority || undefined,
      flags: list(`${at}.flags`, scheduler.flags, (field, flag) => named(field, wire.LinuxSchedulerFlag, flag)),
      runtimeNs: time('runtime', scheduler.runtime),
      deadlineNs: time('deadline', scheduler.deadline),
      periodNs: time('period', scheduler.period),
    }),
  };
}

export const memoryPolicyFromWire = (at: string, { mode, nodes, flags }: wire.LinuxMemoryPolicy): NriMemoryPolicy => ({
  mode: named(`${at}.mode`, wire.MpolMode, mode),
  nodes: text(`${at}.nodes`, nodes),
  ...present<Pick<NriMemoryPolicy, 'flags'>>({
    flags: list(`${at}.flags`, flags, (field, flag) => named(field, wire.MpolFlag, flag)),
  }),
});

export const rdtFromWire = (at: string, rdt: wire.LinuxRdt): NriRdt | undefined =>
  present<NriRdt>({
    closId: message(rdt.closId, ({ value }) => fileName(`${at}.clos_id`, value)),
    schemata: message(rdt.schemata, ({ value }) => list(`${at}.schemata`, value, text) ?? []),
    enableMonitoring: rdt.enableMonitoring?.value,
    remove: rdt.remove || undefined,
  });
