/**
 * The checks that fields of both configs share. Each refuses with the field's name in CRI's words and says what would
 * be right. Must not know which messages the fields belong to.
 */
import type { Int64, Int64Value, LinuxContainerResources } from '../model/cri.ts';
import type { OciArg } from '../model/oci.ts';
import { LAST_ID } from '../values/user-ids.ts';
import { hasParentPart, isAbsolute } from './paths.ts';
import { refuseField, shown } from './refuse.ts';

const CONTROL = /[\x00-\x1f\x7f]/;

/** 4096 bytes with the final NUL is all that the kernel takes (PATH_MAX). */
const MAX_PATH_LENGTH = 4095;

/** Text for one line of a file or a message: a line break in it could forge another one. */
export function checkLine(field: string, text: string | undefined): void {
  if (text !== undefined && CONTROL.test(text))
    refuseField(field, `is ${shown(text)}: it must hold no control characters`);
}

/** What a program is given as arguments. Those that are tokens were looked at when they were sealed. */
export function checkWords(field: string, words: readonly OciArg[] | undefined): void {
  for (const word of words ?? [])
    if (typeof word === 'string' && word.includes('\0'))
      refuseField(field, `holds a NUL byte in ${shown(word)}: no program can be given one`);
}

export function checkRequired(field: string, text: string | undefined): void {
  if (!text) refuseField(field, 'is empty: it is required');
  checkLine(field, text);
}

export function checkAbsolutePath(field: string, path: string | undefined): void {
  checkRequired(field, path);
  if (!isAbsolute(path ?? '')) refuseField(field, `is ${shown(path ?? '')}: it must be an absolute path`);
  if ((path ?? '').length > MAX_PATH_LENGTH) refuseField(field, `is longer than ${MAX_PATH_LENGTH} bytes`);
}

/** A path that cannot leave the directory it is joined to. */
export function checkRelativePath(field: string, path: string): void {
  checkLine(field, path);
  if (isAbsolute(path) || hasParentPart(path)) {
    refuseField(field, `is ${shown(path)}: it must be relative, without ".."`);
  }
}

/** A relative path whose last part is the name of a file. */
export function checkFilePath(field: string, path: string): void {
  checkRelativePath(field, path);
  const name = path.split('/').at(-1) ?? '';
  if (name === '' || name === '.') refuseField(field, `is ${shown(path)}: it must end with the name of a file`);
}

export function checkNoParentPart(field: string, path: string): void {
  if (hasParentPart(path)) refuseField(field, `is ${shown(path)}: it must hold no ".."`);
}

const isDecimal = (value: Int64): boolean => /^-?\d{1,20}$/.test(value);

function checkWhole(field: string, value: Int64 | undefined, least: bigint, most: bigint): void {
  if (value === undefined) return;
  if (!isDecimal(value) || BigInt(value) < least || BigInt(value) > most) {
    refuseField(field, `is ${shown(value)}: it must be from ${least} to ${most}`);
  }
}

/** A day: longer than anybody waits. 0 is no limit. */
const MAX_TIMEOUT_S = 86_400n;

export const checkTimeout = (field: string, seconds: Int64): void => checkWhole(field, seconds, 0n, MAX_TIMEOUT_S);

const checkId = (field: string, value: Int64 | undefined): void => checkWhole(field, value, 0n, BigInt(LAST_ID));

interface UserFields {
  readonly runAsUser?: Int64Value;
  readonly runAsGroup?: Int64Value;
  readonly runAsUsername?: string;
  readonly supplementalGroups?: readonly Int64[];
}

const MAX_SUPPLEMENTAL_GROUPS = 65536;

export function checkUser(fields: UserFields | undefined): void {
  const at = (name: string): string => `linux.security_context.${name}`;
  checkId(at('run_as_user'), fields?.runAsUser?.value);
  checkId(at('run_as_group'), fields?.runAsGroup?.value);
  if (fields?.runAsUsername) {
    checkLine(at('run_as_username'), fields.runAsUsername);
    if (fields.runAsUsername.includes(':')) {
      refuseField(at('run_as_username'), 'holds a colon: give the group in run_as_group');
    }
    if (fields.runAsUser !== undefined) {
      refuseField(at('run_as_username'), 'is given together with run_as_user: give only one of them');
    }
  }
  if (fields?.runAsGroup !== undefined && fields.runAsUser === undefined && !fields.runAsUsername) {
    refuseField(at('run_as_group'), 'is given without a user: give run_as_user or run_as_username too');
  }
  const groups = fields?.supplementalGroups ?? [];
  if (groups.length > MAX_SUPPLEMENTAL_GROUPS) {
    refuseField(at('supplemental_groups'), `has more than ${MAX_SUPPLEMENTAL_GROUPS} entries, the most Linux takes`);
  }
  for (const group of groups) checkId(at('supplemental_groups'), group);
}

const MAX_INT64 = 2n ** 63n - 1n;
/** What the kernel takes, in microseconds; -1 is "no quota". */
const MIN_CPU_TIME = 1000n;
const MAX_CPU_PERIOD = 1_000_000n;

const orZero = (value: Int64 | undefined): Int64 | undefined => (value === '0' ? undefined : value);

export function checkResources(field: string, resources: LinuxContainerResources | undefined): void {
  if (resources === undefined) return;
  const at = (name: string): string => `${field}.${name}`;
  checkWhole(at('cpu_period'), orZero(resources.cpuPeriod), MIN_CPU_TIME, MAX_CPU_PERIOD);
  if (resources.cpuQuota !== '-1') checkWhole(at('cpu_quota'), orZero(resources.cpuQuota), MIN_CPU_TIME, MAX_INT64);
  checkWhole(at('cpu_shares'), resources.cpuShares, 0n, MAX_INT64);
  checkWhole(at('memory_limit_in_bytes'), resources.memoryLimitInBytes, -1n, MAX_INT64);
  checkWhole(at('memory_swap_limit_in_bytes'), resources.memorySwapLimitInBytes, -1n, MAX_INT64);
  checkWhole(at('oom_score_adj'), resources.oomScoreAdj, -1000n, 1000n);
  for (const [name, list] of [
    ['cpuset_cpus', resources.cpusetCpus],
    ['cpuset_mems', resources.cpusetMems],
  ] as const) {
    if (list && !/^[0-9,-]+$/.test(list)) refuseField(at(name), `is ${shown(list)}: it must be a list like 0-3,5`);
  }
  for (const { pageSize = '', limit } of resources.hugepageLimits ?? []) {
    if (!/^\d+[KMGT]B$/.test(pageSize))
      refuseField(at('hugepage_limits.page_size'), `is ${shown(pageSize)}: it must be like 2MB`);
    checkWhole(at('hugepage_limits.limit'), limit, 0n, 2n ** 64n - 1n);
  }
  for (const [name, value] of Object.entries(resources.unified ?? {})) {
    if (!/^[a-z0-9_]+(\.[A-Za-z0-9_]+)+$/.test(name))
      refuseField(at('unified'), `names ${shown(name)}, which is no cgroup file`);
    checkLine(`${at('unified')}[${name}]`, value);
  }
}
