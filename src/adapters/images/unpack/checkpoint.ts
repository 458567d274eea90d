/**
 * Unpacks the archive of a container's checkpoint for a container that goes on from it: the images of its processes into
 * a directory of its own, its changed files into its writable layer. Archives come from anybody who could write where
 * one lay, so both are unpacked by the jailed child, and all that is kept of the first are plain files for root alone.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describedImage } from '../../../domain/checkpoint-description.ts';
import { CHECKPOINT_FILES } from '../../../domain/checkpoint-files.ts';
import { FailureError } from '../../../domain/errors.ts';
import type { DescribedImage } from '../../../domain/pod-sandbox/restored.ts';
import { errorCodeOf } from '../../linux/syscalls.ts';
import type { Spawner } from '../../spawner/types.ts';
import { containerDir, type ImageLayout, LAYER_DIR } from '../layout.ts';
import type { Semaphore } from '../../linux/semaphore.ts';
import type { UnpackCheckpoint } from '../snapshots-port.ts';
import type { Trees } from '../trees/trees.ts';
import type { ImageLimits } from '../types.ts';
import { runUnpacker, type Unpacked, type UnpackerRun } from './run-child.ts';

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
  readonly readImage: (path: string, signal: AbortSignal) => Promise<DescribedImage>;
  /** Names in the unpack directory that are being worked on. */
  readonly active: ReadonlySet<string>;
}

export const createCheckpointArchives = (options: {
  readonly layout: ImageLayout;
  readonly spawner: Pick<Spawner, 'run'>;
  readonly limits: ImageLimits;
  readonly inTurn: Semaphore;
  readonly trees: Pick<Trees, 'markOpaque'>;
}): CheckpointArchives => {
  const { layout, spawner, limits, inTurn, trees } = options;

  const run = (run: Pick<UnpackerRun, 'archivePath' | 'name' | 'form' | 'directory' | 'signal'>): Promise<Unpacked> =>
    inTurn(run.signal, () => runUnpacker({ ...run, spawner, limits, diffId: null, onProgress: () => undefined }));

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

  return {
    active,
    unpack: (containerId, { path, dir }, signal) =>
      filling(dir, async () => {
        const name = `The checkpoint ${path}`;
        await run({ archivePath: path, name, form: 'files', directory: dir, signal });
        if (!(await isDirectory(join(dir, CHECKPOINT_FILES.images))))
          throw new FailureError('InvalidField', `${name} holds no processes: it is not one of a container.`);
        const changes = join(dir, CHECKPOINT_FILES.changes);
        if ((await lstat(changes).catch(() => null)) === null) return;
        const directory = join(containerDir(layout, containerId), LAYER_DIR);
        const { opaque } = await run({ archivePath: changes, name, form: 'changes', directory, signal });
        await trees.markOpaque({ root: directory, opaque });
        await rm(changes);
      }),
    readImage: (path, signal) => {
      const temporary = `checkpoint-${randomUUID()}`;
      const directory = join(layout.unpack, temporary);
      active.add(temporary);
      return filling(directory, async () => {
        const name = `The checkpoint ${path}`;
        await run({ archivePath: path, name, form: 'description', directory, signal });
        const text = await readFile(join(directory, CHECKPOINT_FILES.description), 'utf8').catch(() => null);
        await rm(directory, { recursive: true });
        if (text !== null) return describedImage(path, text);
        throw new FailureError('InvalidField', `${name} does not say what it is of: it is not one of a container.`);
      }).finally(() => active.delete(temporary));
    },
  };
};
