/**
 * Reads a file of an image as a container would see it, from the image's unpacked layers and without mounting them.
 * The image is not trusted: links are resolved inside it alone, and no more is read than was asked for.
 */
import { FailureError } from '../../domain/model/errors.ts';
import { resolveInLayers } from '../../platform/linux/layer-tree.ts';
import { readBounded } from './bounded-file.ts';

/** Content of a regular file of the image, null when there is none. Rejects with ImageInvalid for one that is too large. */
export type ReadImageFile = (chainIds: readonly string[], path: string, maxBytes: number) => Promise<Buffer | null>;

/** `layerDirs` gives the directories of unpacked layers, base first (Snapshots.layerDirs of the image store). */
export const imageFileReader =
  (layerDirs: (chainIds: readonly string[]) => readonly string[]): ReadImageFile =>
  async (chainIds, path, maxBytes) => {
    const found = await resolveInLayers(layerDirs(chainIds), path);
    if (found?.kind !== 'file' || !found.stats.isFile()) return null;
    const read = await readBounded(found.path, maxBytes, false);
    switch (read.kind) {
      case 'content':
        return read.content;
      case 'notRegular':
        return null;
      case 'tooLarge':
        throw new FailureError(
          'ImageInvalid',
          `${path} of the image has ${read.sizeBytes} bytes, more than the ${maxBytes} that are read: make it smaller`,
        );
    }
  };
