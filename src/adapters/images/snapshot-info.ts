/**
 * The note beside each unpacked layer: its whole chain id, of which the directory's name is only the start, and what
 * it takes, so that nobody has to walk it to know.
 */
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDigest } from '../../domain/image/reference.ts';
import { errorCodeOf } from '../../platform/linux/syscalls.ts';
import { INFO_FILE, LAYER_DIR } from './layout.ts';

export interface SnapshotInfo {
  readonly chainId: string;
  readonly diffId: string;
  readonly usedBytes: number;
  readonly inodesUsed: number;
}

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

const parseInfo = (text: string): SnapshotInfo | null => {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const { chainId, diffId, usedBytes, inodesUsed } = (value ?? {}) as Record<string, unknown>;
  const isNamed = typeof chainId === 'string' && isDigest(chainId) && typeof diffId === 'string' && isDigest(diffId);
  if (!isNamed || !isCount(usedBytes) || !isCount(inodesUsed)) return null;
  return { chainId, diffId, usedBytes, inodesUsed };
};

/** The note in a snapshot's directory; null when there is no such snapshot, or one whose note or layer is not whole. */
export const readSnapshotInfo = async (directory: string): Promise<SnapshotInfo | null> => {
  try {
    const [text, layer] = await Promise.all([
      readFile(join(directory, INFO_FILE), 'utf8'),
      lstat(join(directory, LAYER_DIR)),
    ]);
    return layer.isDirectory() ? parseInfo(text) : null;
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw error;
  }
};
