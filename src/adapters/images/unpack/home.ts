/**
 * The directory that an unpacking process has as its root: the layer that it unpacks is in it, and what it reads, which it
 * can't change (new-root.ts), be it whole or still on its way. A layer leaves it by a rename once it is unpacked, so that
 * the process never has more than one in its reach by name.
 */
import { randomUUID } from 'node:crypto';
import { link, mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageLayout } from '../layout.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { spreadDirectoriesIn } from '../../../platform/linux/spread.ts';
import type { NewRoot } from '../../../platform/spawner/types.ts';
import type { UnpackRequest } from './protocol.ts';

const DIRECTORY_MODE = 0o700;
const READ_ONLY = 'in';
const ARCHIVE = 'archive';
const ARRIVALS = 'arrivals';

/** A layer that is still being downloaded: where it is until it is where whole blobs are. */
export interface ArrivingArchive {
  readonly partialPath: string;
  readonly arrivalsPath: string;
  readonly sizeBytes: number;
}

export type FoundArchive = Pick<UnpackRequest, 'archivePath' | 'isOutside' | 'arriving'>;

export interface Home {
  readonly root: Required<NewRoot>;
  /**
   * Puts the archive where the process can read it and no more, also one that is still on its way; resolves with where it
   * finds it, by its own root. Rejects when the archive is on another file system.
   */
  readonly putArchive: (path: string, arriving?: ArrivingArchive) => Promise<FoundArchive>;
  /** Makes an empty directory for a layer, and resolves with its name in the root. */
  readonly makeLayer: () => Promise<string>;
  /** The layer is at `directory` from then on, and the archive is gone. */
  readonly takeLayer: (directory: string) => Promise<void>;
}

export interface Homes {
  /** Names in the unpack directory that are in use. */
  readonly active: ReadonlySet<string>;
  readonly make: () => Promise<Home>;
  /** Once its process has ended. */
  readonly remove: (home: Home) => Promise<void>;
}

/** Layers apart from each other: files beside others that were just removed are dear on ext4. `within` is made beside the mark. */
const makeSpread = async (path: string, within: readonly string[] = []): Promise<void> => {
  await mkdir(path, { recursive: true, mode: DIRECTORY_MODE });
  const made = within.map((name) => mkdir(join(path, name), { mode: DIRECTORY_MODE }));
  await Promise.all([spreadDirectoriesIn(path), ...made]);
};

const homeIn = (directory: string): Home => {
  let layer = '';
  const [archive, arrivals] = [join(directory, READ_ONLY, ARCHIVE), join(directory, READ_ONLY, ARRIVALS)];
  /** False when the download is over. */
  const putArriving = async ({ partialPath, arrivalsPath }: ArrivingArchive): Promise<boolean> => {
    try {
      // They go in the other order: there is no archive yet when only one of them is left.
      await link(arrivalsPath, arrivals);
      await link(partialPath, archive);
      return true;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return false;
      throw error;
    }
  };
  return {
    root: { directory, readOnly: READ_ONLY },
    putArchive: async (path, arriving) => {
      const found = { archivePath: join('/', READ_ONLY, ARCHIVE), isOutside: false };
      if (arriving === undefined || !(await putArriving(arriving))) {
        await link(path, archive);
        return found;
      }
      const arrivalsPath = join('/', READ_ONLY, ARRIVALS);
      return { ...found, arriving: { arrivalsPath, sizeBytes: arriving.sizeBytes } };
    },
    makeLayer: async () => {
      // ext4 takes the name to find a place for a directory that is to lie apart: one name would be one place, each time.
      layer = randomUUID();
      await mkdir(join(directory, layer), { mode: DIRECTORY_MODE });
      return layer;
    },
    takeLayer: async (target) => {
      await rename(join(directory, layer), target);
      await Promise.all([archive, arrivals].map((path) => rm(path, { force: true })));
    },
  };
};

export const createHomes = (
  { unpack }: Pick<ImageLayout, 'unpack'>,
  removeTree: (path: string) => Promise<void>,
): Homes => {
  const active = new Set<string>();
  const nameOf = ({ root }: Home): string => root.directory.slice(unpack.length + 1);
  let parent: Promise<void> | null = null;
  const prepare = (): Promise<void> => {
    parent ??= makeSpread(unpack).catch((error: unknown) => {
      parent = null;
      throw error;
    });
    return parent;
  };
  return {
    active,
    make: async () => {
      const name = `process-${randomUUID()}`;
      const directory = join(unpack, name);
      active.add(name);
      await prepare();
      await makeSpread(directory, [READ_ONLY]);
      return homeIn(directory);
    },
    remove: async (home) => {
      const { directory } = home.root;
      try {
        // Most are empty by then.
        await rmdir(join(directory, READ_ONLY));
        await rmdir(directory);
      } catch {
        await removeTree(directory);
      }
      active.delete(nameOf(home));
    },
  };
};
