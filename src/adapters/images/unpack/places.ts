/**
 * Where unpacked layers are, and who waits for one: a layer is a directory that appears under its name by a rename, as the last
 * step, when it is whole. Must not know how it was unpacked, nor take any away.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FailureError } from '../../../domain/model/errors.ts';
import { unlessAborted } from '../../../platform/rpc/timeout.ts';
import { type ImageLayout, INFO_FILE, snapshotDir } from '../layout.ts';
import { readSnapshotInfo, type SnapshotInfo } from '../snapshot-info.ts';
import { moveToTrash } from '../trash.ts';

export interface Places {
  /** Throws FailureError when another layer has its name. */
  readonly isUnpacked: (chainId: string) => Promise<boolean>;
  /** Resolves when somebody has unpacked the layer. Only a caller whose pull asks for that layer too may wait. */
  readonly whenUnpacked: (chainId: string, signal: AbortSignal) => Promise<void>;
  /** Takes the directory of a whole layer for the layer. */
  readonly putInPlace: (directory: string, info: SnapshotInfo) => Promise<void>;
}

const DIRECTORY_MODE = 0o700;

const isUnpacked = async (layout: ImageLayout, chainId: string): Promise<boolean> => {
  const info = await readSnapshotInfo(snapshotDir(layout, chainId));
  if (info === null) return false;
  if (info.chainId === chainId) return true;
  throw new FailureError(
    'HostFailed',
    `Layers ${chainId} and ${info.chainId} would have the same name: remove the other image first.`,
  );
};

export const createPlaces = (layout: ImageLayout, onSnapshot: (info: SnapshotInfo) => void): Places => {
  const waiting = new Map<string, PromiseWithResolvers<void>>();

  const whenUnpacked = async (chainId: string, signal: AbortSignal): Promise<void> => {
    const wait = waiting.get(chainId) ?? Promise.withResolvers<void>();
    waiting.set(chainId, wait);
    if (await isUnpacked(layout, chainId)) {
      waiting.delete(chainId);
      wait.resolve();
      return;
    }
    await unlessAborted(wait.promise, signal);
  };

  const putInPlace = async (directory: string, info: SnapshotInfo): Promise<void> => {
    await writeFile(join(directory, INFO_FILE), JSON.stringify(info), { mode: 0o600 });
    await mkdir(layout.snapshots, { recursive: true, mode: DIRECTORY_MODE });
    const place = snapshotDir(layout, info.chainId);
    // Something without a good note may be in the way.
    await moveToTrash(layout, place);
    await rename(directory, place);
    onSnapshot(info);
    waiting.get(info.chainId)?.resolve();
    waiting.delete(info.chainId);
  };

  return { isUnpacked: (chainId) => isUnpacked(layout, chainId), whenUnpacked, putInPlace };
};
