/**
 * Unpacks the archive of a container's checkpoint for a container that goes on from it: the images of its processes into
 * a directory of its own, its changed files into its writable layer. Archives come from anybody who could write where
 * one lay, so both are unpacked by the jailed child, and all that is kept of the first are plain files for root alone.
 */
import { lstat, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINT_FILES } from '../../../domain/checkpoint-files.ts';
import { FailureError } from '../../../domain/errors.ts';
import { errorCodeOf } from '../../linux/syscalls.ts';
import type { Spawner } from '../../spawner/types.ts';
import { containerDir, type ImageLayout, LAYER_DIR } from '../layout.ts';
import type { Semaphore } from '../semaphore.ts';
import type { UnpackCheckpoint } from '../snapshots-port.ts';
import type { ImageLimits } from '../types.ts';
import type { ArchiveForm } from './protocol.ts';
import { runUnpacker } from './run-child.ts';

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

export const createCheckpointUnpacker =
  (options: {
    readonly layout: ImageLayout;
    readonly spawner: Pick<Spawner, 'run'>;
    readonly limits: ImageLimits;
    readonly inTurn: Semaphore;
  }): UnpackCheckpoint =>
  async (containerId, { path, dir }, signal) => {
    const { layout, spawner, limits, inTurn } = options;
    const name = `The checkpoint ${path}`;
    const run = (archivePath: string, form: ArchiveForm, directory: string): Promise<unknown> =>
      runUnpacker({
        spawner,
        limits,
        archivePath,
        name,
        form,
        directory,
        diffId: null,
        signal,
        onProgress: () => undefined,
      });
    const changes = join(dir, CHECKPOINT_FILES.changes);
    // What an attempt before a crash left.
    await rm(dir, { recursive: true, force: true });
    await mkdir(dir, { recursive: true, mode: DIRECTORY_MODE });
    try {
      await inTurn(signal, () => run(path, 'files', dir));
      if (!(await isDirectory(join(dir, CHECKPOINT_FILES.images))))
        throw new FailureError('InvalidField', `${name} holds no processes: it is not one of a container.`);
      if ((await lstat(changes).catch(() => null)) === null) return;
      await inTurn(signal, () => run(changes, 'changes', join(containerDir(layout, containerId), LAYER_DIR)));
      await rm(changes);
    } catch (error) {
      await rm(dir, { recursive: true, force: true });
      throw asField(error);
    }
  };
