/**
 * Which devices there are at the paths a container asks for. A path may be a device, a link to one, or a directory
 * that is walked; for privileged containers all of /dev is. Links inside a directory are not followed: what they
 * point at is found by itself, or was not asked for.
 */
import type { BigIntStats } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import type { DeviceFact } from '../../domain/model/container-facts.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { errorCodeOf } from '../../platform/error-code.ts';

const DEV = '/dev';
/** Mounts of their own in every container, or what its runtime makes itself. */
const NOT_WALKED: ReadonlySet<string> = new Set(
  ['pts', 'shm', 'fd', 'mqueue', 'console', '.udev', '.lxc', '.lxd-mounts'].map((name) => join(DEV, name)),
);
const MAX_ENTRIES = 20_000;
const MAX_DEPTH = 16;

/** A device number is 12 bits of major around 20 of minor, for compatibility (makedev(3)). */
export const majorOf = (device: bigint): number => Number(((device >> 8n) & 0xfffn) | ((device >> 32n) & 0xfffff000n));
export const minorOf = (device: bigint): number => Number((device & 0xffn) | ((device >> 12n) & 0xffffff00n));

export function typeOf(stats: BigIntStats): DeviceFact['type'] | null {
  if (stats.isCharacterDevice()) return 'c';
  if (stats.isBlockDevice()) return 'b';
  return stats.isFIFO() ? 'p' : null;
}

const factOf = (hostPath: string, path: string, type: DeviceFact['type'], stats: BigIntStats): DeviceFact => ({
  hostPath,
  path,
  type,
  major: majorOf(stats.rdev),
  minor: minorOf(stats.rdev),
  fileMode: Number(stats.mode & 0o7777n),
  uid: Number(stats.uid),
  gid: Number(stats.gid),
});

/** Of what vanished meanwhile: devices come and go, and directories with them. */
const unlessGone =
  <T>(otherwise: T) =>
  (error: unknown): T => {
    if (errorCodeOf(error) === 'ENOENT') return otherwise;
    throw error;
  };

async function walk(hostPath: string, dir: string, depth: number, budget: { entries: number }): Promise<DeviceFact[]> {
  const names = await readdir(dir).catch(unlessGone<string[]>([]));
  budget.entries -= names.length;
  if (budget.entries < 0 || depth > MAX_DEPTH) {
    throw new FailureError(
      'HostFailed',
      `devices.host_path ${hostPath} holds more than ${MAX_ENTRIES} entries or ${MAX_DEPTH} levels: name the devices one by one`,
    );
  }
  const facts: DeviceFact[] = [];
  for (const name of names.sort((a, b) => (a < b ? -1 : 1))) {
    // Not joined: what follows the path as it was asked for, be it "/dev/x/", is the device's place below it.
    const path = `${dir}/${name}`;
    if (NOT_WALKED.has(normalize(path))) continue;
    const stats = await lstat(path, { bigint: true }).catch(unlessGone(null));
    if (stats === null) continue;
    if (stats.isDirectory()) {
      facts.push(...(await walk(hostPath, path, depth + 1, budget)));
      continue;
    }
    const type = typeOf(stats);
    // A FIFO in /dev is where some daemon listens (initctl), no device.
    if (type !== null && type !== 'p') facts.push(factOf(hostPath, path, type, stats));
  }
  return facts;
}

/** Rejects with HostLacks when there is nothing at the path, or no device. */
export async function inspectDevices(hostPath: string): Promise<readonly DeviceFact[]> {
  const stats = await stat(hostPath, { bigint: true }).catch((error: unknown) => {
    if (errorCodeOf(error) === 'ENOENT') {
      throw new FailureError('HostLacks', `devices.host_path ${hostPath} is not there: is the device attached?`);
    }
    throw error;
  });
  if (stats.isDirectory()) return walk(hostPath, hostPath, 0, { entries: MAX_ENTRIES });
  const type = typeOf(stats);
  if (type === null) throw new FailureError('HostLacks', `devices.host_path ${hostPath} is no device`);
  return [factOf(hostPath, hostPath, type, stats)];
}

export const inspectAllDevices = (): Promise<readonly DeviceFact[]> => inspectDevices(DEV);
