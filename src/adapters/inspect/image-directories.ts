/**
 * Where a directory of an image is that a container mounts by its path in the image. The image is not trusted: links
 * are resolved inside it alone, and what comes out has no link in it, so that nothing else than what was looked at is
 * mounted (layers never change once they are unpacked).
 */
import { isUtf8 } from 'node:buffer';
import type { ImageSubPath, ImageSubPathFact } from '../../domain/model/container-facts.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { IMAGE_VOLUME_FAILED } from '../../domain/image/mounted.ts';
import { shown } from '../../domain/oci/refuse.ts';
import { resolveInLayers } from '../../platform/linux/layer-tree.ts';

/** Directories of unpacked layers, in the order of the chain ids (Snapshots.layerDirs of the image store). */
export type LayerDirs = (chainIds: readonly string[]) => readonly string[];

/** Rejects with InvalidField, in words that kubelet looks for, where the image has no such directory. */
export async function findImageDirectory(
  layerDirs: LayerDirs,
  { image, chainIds, subPath }: ImageSubPath,
): Promise<ImageSubPathFact> {
  const layers = layerDirs(chainIds);
  const found = await resolveInLayers(layers, subPath);
  if (found?.kind === 'directory') {
    const [path] = found.dirs;
    const uppermost = path?.toString() ?? '';
    // What is no text can't be told to an OCI runtime.
    if (path !== undefined && isUtf8(path)) {
      const layer = layers.find((dir) => uppermost === dir || uppermost.startsWith(`${dir}/`)) ?? uppermost;
      return { image, subPath, realPath: uppermost.slice(layer.length) || '/' };
    }
  }
  const problem = found === null ? 'is not in' : 'is no directory of';
  const message = `${IMAGE_VOLUME_FAILED}: mounts.image_sub_path ${shown(subPath)} ${problem} the image ${shown(image)}`;
  throw new FailureError('InvalidField', `${message}: name a directory that is in it`);
}
