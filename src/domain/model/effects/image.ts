/**
 * Effects on the image store, and what their success says. Types only. Mounting layers for a container is in
 * container.ts.
 */
import type { ImageContent } from '../image-content.ts';

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
  /** Deletes blobs and snapshots that no image and no container needs any more. */
  | { readonly kind: 'DeleteImageContent'; readonly blobs: readonly string[]; readonly chainIds: readonly string[] };

export interface ImageResults {
  readonly PullImage: { readonly image: ImageContent };
  readonly LoadImages: { readonly images: readonly ImageContent[] };
  readonly DeleteImageContent: { readonly freedBytes: number };
}

/** What their intents say: all of it. */
export interface ImageIntents {
  readonly PullImage: Whole<'PullImage'>;
  readonly LoadImages: Whole<'LoadImages'>;
  readonly DeleteImageContent: Whole<'DeleteImageContent'>;
}

type Whole<K extends ImageEffect['kind']> = Omit<Extract<ImageEffect, { kind: K }>, 'kind'>;
