/**
 * Unpacks the archive of a container's checkpoint for a container that goes on from it: the images of its processes into
 * a directory of its own, its changed files into its writable layer. Only archives that are trusted are looked into
 * (checkpoint-trust.ts). All the same both are unpacked by the jailed child, and all that is kept of the first are plain
 * files for root alone.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describedImage } from '../../../domain/pod-sandbox/checkpoint-description.ts';
import { CHECKPOINT_FILES } from '../../../domain/model/checkpoint-files.ts';
import type { GivenArchive } from '../../../domain/model/effects/checkpoint.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import type { DescribedImage } from '../../../domain/model/pod-restore.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { containerDir, type ImageLayout, LAYER_DIR } from '../layout.ts';
import type { UnpackCheckpoint } from '../snapshots-port.ts';
import type { Trees } from '../trees/trees.ts';
import type { ImageLimits } from '../types.ts';
import { copyTrusted } from './checkpoint-trust.ts';
import type { UnpackerProcesses } from './processes.ts';
import type { Unpacked, UnpackerRun } from './run-child.ts';
import type { Turns } from './turns.ts';

const DIRECTORY_MODE = 0o700;

const isDirectory = async (path: string): Promise<boolean> => {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
};

/** What is wrong with an image is a client's own fault, and so it is here. */
const asField = (error: unknown): unknown =>
  error instanceof FailureError && error.failure.reason === 'ImageInvalid'
    ? new FailureError('InvalidField', error.failure.message, { cause: error })
    : error;

export interface CheckpointArchives {
  readonly unpack: UnpackCheckpoint;
  /** What an archive says of the image that its container was made from. Rejects with FailureError InvalidField. */
  readonly readImage: (archive: GivenArchive, signal: AbortSignal) => Promise<DescribedImage>;
  /** Names in the unpack directory that are being worked on. */
  readonly active: ReadonlySet<string>;
}

export const createCheckpointArchives = (options: {
  readonly layout: ImageLayout;
  readonly processes: UnpackerProcesses;
  readonly limits: ImageLimits;
  readonly turns: Pick<Turns, 'inTurn'>;
  readonly trees: Pick<Trees, 'markOpaque'>;
  /** Files with the keys of those whose checkpoints are restored here. */
  readonly trustedKeyPaths: readonly string[];
}): CheckpointArchives => {
  const { layout, processes, limits, turns, trees, trustedKeyPaths } = options;

  const run = (run: Pick<UnpackerRun, 'archivePath' | 'name' | 'form' | 'directory' | 'signal'>): Promise<Unpacked> =>
    turns.inTurn({ signal: run.signal, place: null, ready: null }, async () => {
      const unpacked = await processes.run({ ...run, place: null, diffId: null, onProgress: () => undefined });
      await unpacked.gone;
      return unpacked;
    });

  /** Has `work` fill an empty directory, which is gone when that fails. */
  const filling = async <T>(dir: string, work: () => Promise<T>): Promise<T> => {
    // What an attempt before a crash left.
    await rm(dir, { recursive: true, force: true });
    await mkdir(dir, { recursive: true, mode: DIRECTORY_MODE });
    try {
      return await work();
    } catch (error) {
      await rm(dir, { recursive: true, force: true });
      throw asField(error);
    }
  };

  const active = new Set<string>();

  /** Has `work` use a directory that is gone afterwards, whatever came of it. */
  const meanwhile = async <T>(work: (directory: string) => Promise<T>): Promise<T> => {
    const temporary = `checkpoint-${randomUUID()}`;
    const directory = join(layout.unpack, temporary);
    active.add(temporary);
    try {
      await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
      return await work(directory);
    } finally {
      await rm(directory, { recursive: true, force: true });
      active.delete(temporary);
    }
  };

  /** Has `work` unpack a copy of the archive, which is the one that was found to be trusted. */
  const trusted = <T>(
    archive: GivenArchive,
    signal: AbortSignal,
    work: (copy: string, directory: string) => Promise<T>,
  ): Promise<T> =>
    meanwhile(async (directory) => {
      const copy = join(directory, 'archive');
      const { reservedBytes } = limits;
      await copyTrusted({ archive, trustedKeyPaths, copy, directory, reservedBytes, signal });
      return work(copy, directory);
    });

  return {
    active,
    unpack: (containerId, archive, signal) =>
      trusted(archive, signal, (archivePath) =>
        filling(archive.dir, async () => {
          const { path, dir } = archive;
          const name = `The checkpoint ${path}`;
          await run({ archivePath, name, form: 'files', directory: dir, signal });
          if (!(await isDirectory(join(dir, CHECKPOINT_FILES.images))))
            throw new FailureError('InvalidField', `${name} holds no processes: it is not one of a container.`);
          const changes = join(dir, CHECKPOINT_FILES.changes);
          if ((await lstat(changes).catch(() => null)) === null) return;
          const directory = join(containerDir(layout, containerId), LAYER_DIR);
          const { opaque } = await run({ archivePath: changes, name, form: 'changes', directory, signal });
          await trees.markOpaque({ root: directory, opaque });
          await rm(changes);
        }),
      ),
    readImage: (archive, signal) =>
      trusted(archive, signal, (archivePath, temporary) => {
        const directory = join(temporary, 'described');
        return filling(directory, async () => {
          const { path } = archive;
          const name = `The checkpoint ${path}`;
          await run({ archivePath, name, form: 'description', directory, signal });
          const text = await readFile(join(directory, CHECKPOINT_FILES.description), 'utf8').catch(() => null);
          if (text !== null) return describedImage(path, text);
          throw new FailureError('InvalidField', `${name} does not say what it is of: it is not one of a container.`);
        });
      }),
  };
};
