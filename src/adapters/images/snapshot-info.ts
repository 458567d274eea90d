/**
 * The note beside each unpacked layer: its whole chain id, of which the directory's name is only the start, and what
 * it takes, so that nobody has to walk it to know.
 */
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { isDigest } from '../../domain/image/reference.ts';
import { readAs } from '../../platform/foreign-json.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { INFO_FILE, LAYER_DIR } from './layout.ts';

const digestSchema = z.string().refine(isDigest);
const countSchema = z.int().nonnegative();
const infoSchema = z.object({
  chainId: digestSchema,
  diffId: digestSchema,
  usedBytes: countSchema,
  inodesUsed: countSchema,
});

export type SnapshotInfo = Readonly<z.output<typeof infoSchema>>;

/** The note in a snapshot's directory; null when there is no such snapshot, or one whose note or layer is not whole. */
export const readSnapshotInfo = async (directory: string): Promise<SnapshotInfo | null> => {
  try {
    const [text, layer] = await Promise.all([
      readFile(join(directory, INFO_FILE), 'utf8'),
      lstat(join(directory, LAYER_DIR)),
    ]);
    return layer.isDirectory() ? readAs(infoSchema, text) : null;
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
};
