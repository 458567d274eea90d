/**
 * Writable layers of containers, on top of the unpacked layers of their images. Makes and removes directories; mounting
 * them is the shim's. A container's layer is named by its id, so that making it again finds what is there.
 */
import type { Stats } from 'node:fs';
import { chmod, chown, lstat, mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Mount } from '../../domain/model/tasks.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { nodeIdOf } from '../../domain/oci/user-namespace.ts';
import type { PodUserNamespace } from '../../domain/model/user-namespace.ts';
import { isThere } from '../../platform/linux/exists.ts';
import { settleAll } from '../../platform/linux/settle-all.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { containerDir, type ImageLayout, LAYER_DIR, layerDir } from './layout.ts';
import type { Snapshots } from './snapshots-port.ts';
import type { Trees } from './trees/trees.ts';

const WORK_DIR = 'work';
const DIRECTORY_MODE = 0o700;
const ROOT_MODE = 0o755;
const MODE_MASK = 0o7777;
/** What mount(2) takes of a file system's own options: a page. */
const MOUNT_DATA_BYTES_MAX = 4_096;
/** Where the kernel has it: with the index, overlayfs refuses to have one layer under two mounts. */
const INDEX_PARAMETER = '/sys/module/overlay/parameters/index';

type Looks = Pick<Stats, 'mode' | 'uid' | 'gid'>;

const makeOwn = async (directory: string): Promise<void> => {
  await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
};

export const createSnapshots = (layout: ImageLayout, trees: Trees): Snapshots => {
  let indexOption: Promise<readonly string[]> | null = null;

  const indexOptions = (): Promise<readonly string[]> => {
    indexOption ??= isThere(INDEX_PARAMETER).then((hasIndex) => (hasIndex ? ['index=off'] : []));
    return indexOption;
  };

  const layerDirs = (chainIds: readonly string[]): string[] => chainIds.map((chainId) => layerDir(layout, chainId));

  const notUnpacked = (dir: string): FailureError =>
    new FailureError('HostFailed', `A layer of the image is not unpacked at ${dir}: pull the image again.`);

  const checkLayers = async (dirs: readonly string[]): Promise<void> => {
    const present = await Promise.all(dirs.map(isThere));
    const missing = dirs.find((_, index) => present[index] === false);
    if (missing !== undefined) throw notUnpacked(missing);
  };

  const looksOf = async (topLayer: string | undefined): Promise<Looks> => {
    if (topLayer === undefined) return { mode: ROOT_MODE, uid: 0, gid: 0 };
    try {
      return await lstat(topLayer);
    } catch (error) {
      throw errorCodeOf(error) === 'ENOENT' ? notUnpacked(topLayer) : error;
    }
  };

  /** The container sees its root directory as the image's: overlayfs shows the writable layer's own. */
  const makeRoot = async (path: string, { mode, uid, gid }: Looks, users?: PodUserNamespace): Promise<void> => {
    try {
      await mkdir(path, { mode: DIRECTORY_MODE });
    } catch (error) {
      if (errorCodeOf(error) === 'EEXIST') return;
      throw error;
    }
    if (users !== undefined) await chown(path, nodeIdOf(users.uids, uid), nodeIdOf(users.gids, gid));
    // What root makes is root's.
    else if (uid !== 0 || gid !== 0) await chown(path, uid, gid);
    await chmod(path, mode & MODE_MASK);
  };

  return {
    layerDirs,
    prepare: async (containerId, chainIds, users) => {
      const directory = containerDir(layout, containerId);
      const upper = join(directory, LAYER_DIR);
      const work = join(directory, WORK_DIR);
      const lower = layerDirs(chainIds).toReversed();
      const [top, ...others] = lower;
      const [looks] = await Promise.all([looksOf(top), checkLayers(others)]);
      await makeOwn(directory);
      await settleAll([makeRoot(upper, looks, users), ...(top === undefined ? [] : [makeOwn(work)])]);
      if (top === undefined) return [{ type: 'bind', source: upper, options: ['rbind', 'rw'] }] satisfies Mount[];
      const options = [
        ...(await indexOptions()),
        `lowerdir=${lower.join(':')}`,
        `upperdir=${upper}`,
        `workdir=${work}`,
      ];
      return [{ type: 'overlay', source: 'overlay', options }] satisfies Mount[];
    },
    view: async (chainIds) => {
      const lower = layerDirs(chainIds).toReversed();
      if (lower.length === 0) return null;
      await checkLayers(lower);
      // Without an upper layer, overlayfs wants two lower ones at least: one layer alone has an empty one below it.
      if (lower.length === 1) {
        await mkdir(layout.nothing, { recursive: true, mode: ROOT_MODE });
        lower.push(layout.nothing);
      }
      const lowerdir = `lowerdir=${lower.join(':')}`;
      if (lowerdir.length >= MOUNT_DATA_BYTES_MAX) {
        const message = `The image has ${lower.length} layers, more than one mount can hold: build it with fewer.`;
        throw new FailureError('HostFailed', message);
      }
      return { type: 'overlay', source: 'overlay', options: ['ro', lowerdir] };
    },
    remove: async (containerId) => {
      const directory = containerDir(layout, containerId);
      await Promise.all([trees.remove(join(directory, LAYER_DIR)), trees.remove(join(directory, WORK_DIR))]);
      try {
        await rmdir(directory);
      } catch (error) {
        const code = errorCodeOf(error);
        // Others may keep things of the container beside its layer.
        if (code !== 'ENOENT' && code !== 'ENOTEMPTY') throw error;
      }
    },
  };
};
