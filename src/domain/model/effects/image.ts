/**
 * Effects on the image store, and what their success says. Types only. Mounting layers for a container is in
 * container.ts.
 */
import type { ImageContent, ImageLayer } from '../image-content.ts';

export type ImageEffect =
  | {
      readonly kind: 'PullImage';
      /** Normalised reference: registry.example/repo:tag, …@sha256:… or both. */
      readonly reference: string;
      /** Token of the credentials, null for none. */
      readonly credentials: string | null;
      /** The runtime handler that it is pulled for. All of them share one store (docs/decisions/handlers.md). */
      readonly runtimeHandler?: string;
    }
  /** Reads an OCI or docker archive that the caller streams in; `upload` names the stream. */
  | { readonly kind: 'LoadImages'; readonly upload: string }
  /**
   * Has all of an image on the disk for good. What the end of the node took of it, before that was done, is made again from
   * what is left; fails with ImageInvalid when that is not enough.
   */
  | { readonly kind: 'SyncImage'; readonly layers: readonly ImageLayer[]; readonly blobs: readonly string[] }
  /**
   * Deletes blobs and snapshots that no image and no container needs any more. `fetching`: references of pulls and uploads
   * of loads that were under way when it was asked for. What these count on, or have brought, stays; absent for none.
   */
  | {
      readonly kind: 'DeleteImageContent';
      readonly blobs: readonly string[];
      readonly chainIds: readonly string[];
      readonly fetching?: readonly string[];
    };

export interface ImageResults {
  readonly PullImage: { readonly image: ImageContent } & Written;
  readonly LoadImages: { readonly images: readonly ImageContent[] } & Written;
  readonly SyncImage: Record<string, never>;
  readonly DeleteImageContent: { readonly freedBytes: number };
}

/** `unsynced`: the kernel has it, the disk perhaps not yet, so that SyncImage is owed. Absent: the disk has it. */
interface Written {
  readonly unsynced?: true;
}

/** What their intents say: all of it, but for what follows from the image. */
export interface ImageIntents {
  readonly PullImage: Whole<'PullImage'>;
  readonly LoadImages: Whole<'LoadImages'>;
  readonly SyncImage: null;
  readonly DeleteImageContent: Whole<'DeleteImageContent'>;
}

type Whole<K extends ImageEffect['kind']> = Omit<Extract<ImageEffect, { kind: K }>, 'kind'>;
