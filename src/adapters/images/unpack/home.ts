/**
 * The directory that an unpacking process has as its root: the layer that it unpacks is in it, and what it reads, which it
 * can't change (new-root.ts). A layer leaves it by a rename once it is unpacked, so that the process never has more than
 * one in its reach by name.
 */
import { randomUUID } from 'node:crypto';
import { link, mkdir, rename, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageLayout } from '../layout.ts';
import { spreadDirectoriesIn } from '../../../platform/linux/spread.ts';
import type { NewRoot } from '../../../platform/spawner/types.ts';

const DIRECTORY_MODE = 0o700;
const READ_ONLY = 'in';
const ARCHIVE = 'archive';

export interface Home {
  readonly root: Required<NewRoot>;
  /** Where the process finds an archive that is put there, by its own root. */
  readonly archivePath: string;
  /** Rejects when the archive is on another file system. */
  readonly putArchive: (path: string) => Promise<void>;
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

/** Layers apart from each other: files beside others that were just removed are dear on ext4. */
const makeSpread = async (path: string): Promise<void> => {
  await mkdir(path, { recursive: true, mode: DIRECTORY_MODE });
  await spreadDirectoriesIn(path);
};

const homeIn = (directory: string): Home => {
  let layer = '';
  const archive = join(directory, READ_ONLY, ARCHIVE);
  return {
    root: { directory, readOnly: READ_ONLY },
    archivePath: join('/', READ_ONLY, ARCHIVE),
    putArchive: (path) => link(path, archive),
    makeLayer: async () => {
      // ext4 takes the name to find a place for a directory that is to lie apart: one name would be one place, each time.
      layer = randomUUID();
      await mkdir(join(directory, layer), { mode: DIRECTORY_MODE });
      return layer;
    },
    takeLayer: async (target) => {
      await rename(join(directory, layer), target);
      await rm(archive, { force: true });
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
      await makeSpread(directory);
      await mkdir(join(directory, READ_ONLY), { mode: DIRECTORY_MODE });
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
