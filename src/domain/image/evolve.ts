/** Images that are whole on this node, with the names they go by. */
import type { Sequenced } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import type { NodeState } from '../model/state.ts';

export function evolveImage(state: NodeState, id: string, record: Sequenced): void {
  const image = state.images.get(id);
  switch (record.type) {
    case 'image.pulled': {
      const { image: content } = record.body;
      const known = image?.content;
      // By older rules nothing was deleted while it was pulled.
      const isOnItsWayOut = image?.removing === true && rulesOf(state) >= 12;
      state.images.set(id, {
        id,
        seq: image?.seq ?? record.seq,
        pulledAtNs: image?.pulledAtNs ?? String(record.atNs),
        removing: false,
        ...((isOnItsWayOut || image?.pulledAgain) && { pulledAgain: true }),
        ...(record.body.unsynced === true && { unsynced: 'waiting' }),
        undoFailures: 0,
        content: {
          ...content,
          repoTags: union(known?.repoTags, content.repoTags),
          repoDigests: union(known?.repoDigests, content.repoDigests),
          // Of what it had by names that were removed some may be gone already.
          blobs: isOnItsWayOut ? content.blobs : union(known?.blobs, content.blobs),
        },
      });
      return;
    }
    case 'image.untagged':
      if (image === undefined) return;
      state.images.set(id, {
        ...image,
        content: {
          ...image.content,
          repoTags: image.content.repoTags.filter((tag) => !record.body.repoTags.includes(tag)),
        },
      });
      return;
    case 'image.removing':
      if (image !== undefined)
        state.images.set(id, {
          ...image,
          removing: true,
          content: { ...image.content, repoTags: [], repoDigests: [] },
        });
      return;
    case 'effects.requested': {
      if (image === undefined) return;
      const asked = record.body.effects.map(({ kind }) => kind);
      if (asked.includes('SyncImage')) state.images.set(id, { ...image, unsynced: 'syncing' });
      if (asked.includes('DeleteImageContent')) {
        const { pulledAgain: _, ...going } = image;
        state.images.set(id, going);
      }
      return;
    }
    case 'effect.ended':
      if (image === undefined) return;
      if (record.body.failure !== undefined) state.images.set(id, { ...image, undoFailures: image.undoFailures + 1 });
      // What was pulled meanwhile waits for a sync of its own.
      else if (record.body.kind === 'SyncImage' && image.unsynced === 'syncing') {
        const { unsynced: _, ...synced } = image;
        state.images.set(id, { ...synced, undoFailures: 0 });
      }
      return;
    case 'image.removed':
      state.images.delete(id);
      return;
    default:
  }
}

const union = (a: readonly string[] | undefined, b: readonly string[]): readonly string[] => [
  ...new Set([...(a ?? []), ...b]),
];
