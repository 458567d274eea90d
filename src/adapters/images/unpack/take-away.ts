/**
 * Takes unpacked layers out of the store, but those that somebody counts on; whoever wants one that is on its way out is
 * told when it has gone. Removing what was taken out is the trash's.
 */
import { type ImageLayout, snapshotDir } from '../layout.ts';
import { readSnapshotInfo, type SnapshotInfo } from '../snapshot-info.ts';
import { moveToTrash } from '../trash.ts';

/** Moves those layers to the trash that are there, and neither held nor kept: what they were. */
export type TakeAway = (
  chainIds: readonly string[],
  isKept: (chainId: string) => boolean,
) => Promise<readonly SnapshotInfo[]>;

/** Layers on their way out: whoever wants one waits until it is gone, and unpacks it anew. */
export const createTakeAway = (
  layout: ImageLayout,
  isHeld: (chainId: string) => boolean,
): { readonly takeAway: TakeAway; readonly whenGone: (chainId: string) => Promise<unknown> | undefined } => {
  const leaving = new Map<string, Promise<unknown>>();
  const takeAway: TakeAway = async (chainIds, isKept) => {
    const infos = await Promise.all(chainIds.map((chainId) => readSnapshotInfo(snapshotDir(layout, chainId))));
    // From here to the last mark nobody else has a turn: a pull finds each of them held by it, or on its way out.
    const isNeeded = (chainId: string): boolean => isHeld(chainId) || isKept(chainId) || leaving.has(chainId);
    const there = infos.flatMap((info, index) =>
      info !== null && info.chainId === chainIds[index] && !isNeeded(info.chainId) ? [info] : [],
    );
    const taken = there.map(async (info) => {
      const { chainId } = info;
      const moving = moveToTrash(layout, snapshotDir(layout, chainId));
      leaving.set(
        chainId,
        moving.catch(() => undefined),
      );
      try {
        return (await moving) ? [info] : [];
      } finally {
        leaving.delete(chainId);
      }
    });
    return (await Promise.all(taken)).flat();
  };
  return { takeAway, whenGone: (chainId) => leaving.get(chainId) };
};
