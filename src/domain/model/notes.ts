/** What is written down about the node itself because somebody will want to read it. Types only. */

/**
 * Something shows that this journal is not all that was written here: it was put back, cut, replaced or begun anew. Until
 * somebody says that they know, nothing is undone or deleted for its sake.
 */
export interface JournalDoubt {
  readonly what: string;
  /** The head that the journal does not contain: name of the file that keeps it, and its SHA-256. Absent: there is none. */
  readonly head?: { readonly file: string; readonly digest: string };
}

/** What happened to the node that nothing follows from: it is there to be read. */
export type NodeNote =
  /** Its root directory's file system became too full for anything but stopping and removing; and no longer is. */
  | { readonly type: 'disk.filled' | 'disk.freed'; readonly body: { readonly freeBytes: number } }
  /** Content that no image needs, by its name in the store: what a failed pull or a crash had left. */
  | {
      readonly type: 'content.collected';
      readonly body: { readonly blobs: readonly string[]; readonly layers: readonly string[] };
    };

/** What is decided about the node as a whole. */
export type NodeEvent =
  | { readonly type: 'node.configured'; readonly body: { readonly podCidr: string } }
  /** Every doubt until now is known to somebody: the call says to whom, and why it is right so. */
  | { readonly type: 'journal.acknowledged'; readonly body: Record<string, never> }
  /** Archives of checkpoints with these digests were written here: they may be restored here. */
  | { readonly type: 'checkpoint.written'; readonly body: { readonly digests: readonly string[] } };

/** A stored blob that is not what its digest says, or is not there; an unpacked layer that is not there as it was put. */
export interface DamagedContent {
  readonly kind: 'blob' | 'layer';
  /** Digest of the blob, or chain id of the layer. */
  readonly digest: string;
  readonly problem: 'altered' | 'missing';
}
