/**
 * The calls by which directories of an unpacked layer are completed, in two kinds that do the same: libuv's threads wait for the
 * disk, which the daemon's own loop needs, or the calling thread does, which is quicker where there are many.
 */
import { chmodSync, lchownSync, lstatSync, type Stats, utimesSync } from 'node:fs';
import { chmod, lchown, lstat, utimes } from 'node:fs/promises';
import { hasXattrNow, readXattrsNow, writeXattrNow } from '../../../platform/linux/jail.ts';
import { listXattrs, readXattr, writeXattr } from '../../../platform/linux/syscalls.ts';

type Soon<T> = T | Promise<T>;

/** None follows a link, but chmod and utimes, which are asked of directories alone. */
export interface LayerCalls {
  readonly lstat: (path: Buffer) => Soon<Stats>;
  readonly chown: (path: Buffer, uid: number, gid: number) => Soon<void>;
  readonly chmod: (path: Buffer, mode: number) => Soon<void>;
  readonly utimes: (path: Buffer, accessed: Date, changed: Date) => Soon<void>;
  readonly hasXattr: (path: Buffer, name: string) => Soon<boolean>;
  readonly readXattrs: (
    path: Buffer,
    isWanted: (name: string) => boolean,
  ) => Soon<readonly (readonly [name: string, value: Uint8Array])[]>;
  readonly writeXattr: (path: Buffer, name: string, value: Uint8Array) => Soon<void>;
}

/** As a system call takes it. */
const callPath = (path: Buffer): Buffer => Buffer.concat([path, Buffer.of(0)]);

const readPooled: LayerCalls['readXattrs'] = async (path, isWanted) => {
  const names = (await listXattrs(path)).filter(isWanted);
  const values = await Promise.all(names.map(async (name) => [name, await readXattr(path, name)] as const));
  return values.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
};

export const pooledLayerCalls: LayerCalls = {
  lstat: (path) => lstat(path),
  chown: lchown,
  chmod,
  utimes,
  hasXattr: async (path, name) => (await readXattr(path, name)) !== null,
  readXattrs: readPooled,
  writeXattr,
};

/** Never for the daemon's own loop. */
export const waitingLayerCalls: LayerCalls = {
  lstat: (path) => lstatSync(path),
  chown: lchownSync,
  chmod: chmodSync,
  utimes: utimesSync,
  hasXattr: (path, name) => hasXattrNow(callPath(path), name),
  readXattrs: (path, isWanted) => readXattrsNow(callPath(path), isWanted),
  writeXattr: (path, name, value) => writeXattrNow(callPath(path), name, value),
};
