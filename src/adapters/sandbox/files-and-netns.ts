/**
 * Performs what a pod sandbox needs of the host but for its network's plugins and its task: PreparePodSandbox,
 * CleanPodSandbox, CreateNetns, RemoveNetns. Doing any of them again is safe. Must touch nothing outside of the
 * directories it was given.
 */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { EffectOf } from '../../domain/model/effects.ts';
import type { Bundle } from '../../domain/model/tasks.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { parseProfile } from '../../domain/oci/seccomp.ts';
import { labelledMount } from '../../domain/oci/selinux.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import { signatureOf } from '../../platform/linux/file-signature.ts';
import { createPathCleaner, type Files } from '../../platform/linux/files.ts';
import type { Snapshots } from '../images/snapshots-port.ts';
import { writeLabel } from '../../platform/linux/selinux.ts';
import { settleAll } from '../../platform/linux/settle-all.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import type { Spawner } from '../../platform/spawner/types.ts';

export interface SandboxDependencies {
  readonly spawner: Pick<Spawner, 'createNetns' | 'pinNetnsOf' | 'mount' | 'unmount' | 'unpin'>;
  /** Writes the bundle of the pause task; the bundle adapter's. */
  readonly writeBundle: (bundle: Bundle) => Promise<void>;
  /** Mounts of the configured sandbox image, where one is. */
  readonly snapshots: Pick<Snapshots, 'prepare' | 'remove'>;
  /** The daemon's root and state directories: nothing outside of them is made or removed. */
  readonly roots: readonly string[];
  readonly files: Files;
  /** The JSON of a seccomp profile of the node; the inspect adapter's. */
  readonly readSeccompProfile: (path: string) => Promise<unknown>;
  /** Where files without content of their own are copied from. */
  readonly hostEtcDir?: string;
}

/** Who may do what with the pod's files. */
interface Rights {
  /** undefined: the node's root. */
  readonly owner: EffectOf<'PreparePodSandbox'>['users'];
  /** SELinux; undefined: as they are made. */
  readonly label: string | undefined;
}

const FILE_MODE = 0o644;
/** Twice what the host's own files may have, which the pod's are copied from: they are written beside what is there. */
const FILES_SIZE = '8m';
/** Nothing makes files there but the daemon. */
const FILES_INODES = 32;
const FILE_NAME = /^[\w-][\w.-]*$/;
const HOST_FILE_BYTES_MAX = 1024 * 1024;
const NS_PER_MS = 1_000_000n;
/** Many times the kernel's tick, by which it dates files. */
const SETTLED_NS = 1_000_000_000n;

interface HostFile {
  readonly signature: string;
  readonly content: Uint8Array;
}

/**
 * Reads files of the host's /etc, bounded; one that is missing is empty. Their links are the host's own and are followed. A file
 * that has not changed is not read again: each pod has a copy, and reading takes four turns of the pool.
 */
const createHostFiles = (): ((path: string) => Promise<Uint8Array>) => {
  const known = new Map<string, HostFile>();
  return async (path) => {
    try {
      const before = await stat(path, { bigint: true });
      if (before.size > HOST_FILE_BYTES_MAX)
        throw new FailureError('HostFailed', `${path} is larger than ${HOST_FILE_BYTES_MAX} bytes: make it smaller.`);
      const signature = signatureOf(before);
      const file = known.get(path);
      if (file?.signature === signature) return file.content;
      const content = await readFile(path);
      // What is written meanwhile, or within the same tick of the kernel's clock, must not pass for what was read.
      const isSettled = BigInt(Date.now()) * NS_PER_MS - before.ctimeNs > SETTLED_NS;
      if (isSettled && signatureOf(await stat(path, { bigint: true })) === signature)
        known.set(path, { signature, content });
      return content;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return new Uint8Array();
      throw error;
    }
  };
};

export const createSandboxEffects = ({
  spawner,
  writeBundle,
  snapshots,
  roots,
  files,
  readSeccompProfile,
  hostEtcDir = '/etc',
}: SandboxDependencies): Pick<
  PerformEffects,
  'PreparePodSandbox' | 'CleanPodSandbox' | 'CreateNetns' | 'RemoveNetns'
> => {
  const cleaner = createPathCleaner(roots, spawner.unmount, files);
  const readHostFile = createHostFiles();

  const writeSandboxFile = async (
    dir: string,
    name: string,
    content: string | null,
    { owner, label }: Rights,
  ): Promise<void> => {
    if (!FILE_NAME.test(name)) throw new FailureError('Bug', `${name} cannot be a file of a pod sandbox.`);
    const path = join(dir, name);
    await files.writeFileWhole(path, content ?? (await readHostFile(join(hostEtcDir, name))), FILE_MODE);
    if (owner !== undefined) await files.callsAt(path).chown(path, owner.uids.first, owner.gids.first);
    if (label !== undefined) await writeLabel(path, label);
  };

  /**
   * A file system of the pod's own for its files: containers may write to them, and what they write must not fill the
   * one that the daemon and the node have their state in.
   */
  const mountFiles = async (dir: string, owner: Rights['owner']): Promise<void> => {
    await files.makeDirectoryOfPod(dir, owner?.gids.first);
    if (await files.isMountPoint(dir)) return;
    const access = owner === undefined ? ['mode=0700'] : ['mode=0710', `gid=${owner.gids.first}`];
    const options = ['nosuid', 'nodev', 'noexec', `size=${FILES_SIZE}`, `nr_inodes=${FILES_INODES}`, ...access];
    await spawner.mount({ source: 'files', type: 'tmpfs', options, target: dir });
  };

  const mountShm = async (
    { path, sizeBytes }: { path: string; sizeBytes: number },
    { owner, label }: Rights,
  ): Promise<void> => {
    await files.makeDirectory(path);
    if (await files.isMountPoint(path)) return;
    const options = ['nosuid', 'nodev', 'noexec', 'mode=1777', `size=${sizeBytes}`];
    if (owner !== undefined) options.push(`uid=${owner.uids.first}`, `gid=${owner.gids.first}`);
    await spawner.mount({ ...labelledMount({ source: 'shm', type: 'tmpfs', options }, label), target: path });
  };

  const withProfile = async (bundle: Bundle, path: string | null): Promise<Bundle> => {
    if (path === null) return bundle;
    const seccomp = parseProfile(await readSeccompProfile(path), path);
    return { ...bundle, spec: { ...bundle.spec, linux: { ...bundle.spec.linux, seccomp } } };
  };

  return {
    PreparePodSandbox: async ({
      podSandboxId,
      dir,
      files: contents,
      shm,
      bundle,
      seccompProfilePath,
      chainIds,
      mountLabel,
      users,
    }) => {
      const rights: Rights = { owner: users, label: mountLabel };
      for (const path of [dir, shm?.path, bundle?.path]) if (path !== undefined) cleaner.check(path);
      await mountFiles(dir, users);
      await settleAll([
        ...Object.entries(contents).map(([name, content]) => writeSandboxFile(dir, name, content, rights)),
        ...(shm ? [mountShm(shm, rights)] : []),
        ...(bundle ? [withProfile(bundle, seccompProfilePath).then(writeBundle)] : []),
      ]);
      const rootfs = chainIds === null ? [] : await snapshots.prepare(podSandboxId, chainIds);
      return { rootfs: rootfs.map((mount) => labelledMount(mount, mountLabel)) };
    },
    CleanPodSandbox: async ({ podSandboxId, paths, hasSnapshot }) => {
      await cleaner.clean(paths);
      if (hasSnapshot) await snapshots.remove(podSandboxId);
      return {};
    },
    CreateNetns: async ({ path, holder }) => {
      cleaner.check(path);
      await (holder === undefined ? spawner.createNetns(path) : spawner.pinNetnsOf(holder, path));
      return {};
    },
    RemoveNetns: async ({ path }) => {
      cleaner.check(path);
      await spawner.unpin([path]);
      return {};
    },
  };
};
