/**
 * One pull, in the pulling thread: finds the servers, resolves the reference, and brings the image's content into the
 * store. Downloads of one blob are one, whichever pulls want it; each pull has so many under way at a time.
 */
import type { ImageContent, ImageLayer } from '../../../domain/model/image-content.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { type ImageReference, parseImageReference, repoDigestOf, repoTagOf } from '../../../domain/image/reference.ts';
import type { BlobStore } from '../blob-store.ts';
import type { Descriptor } from '../documents.ts';
import type { BlobSink } from '../registry/blob.ts';
import { createRegistry, type Registry } from '../registry/client.ts';
import { findEndpoints } from '../registry/hosts.ts';
import type { HttpClient } from '../registry/http.ts';
import { createSemaphore, type Semaphore } from '../../../platform/linux/semaphore.ts';
import type { SharedWork } from '../shared-work.ts';
import { bringImage } from './image.ts';
import type { AskedPull, PullThreadOptions } from './messages.ts';

/** What all pulls of the thread have in common. */
export interface PullShop {
  readonly options: PullThreadOptions;
  readonly blobs: BlobStore;
  readonly http: HttpClient;
  readonly downloads: SharedWork<void>;
  /** The bound that all downloads from one registry have in common. */
  readonly turnAt: (registryHost: string) => Semaphore;
  /** Told of each piece of a download; `bytesDone` is how far the blob has come. */
  readonly onDownloaded: (digest: string, bytesDone: number, bytesTotal: number) => void;
  /** Told how long each piece was, once it was written. */
  readonly passed: (bytes: number) => void;
}

export interface PullObserver {
  /** A manifest or index is not in the store yet. */
  readonly fetching: () => void;
  readonly layers: (image: string, layers: readonly ImageLayer[]) => void;
  readonly layerBegun: (image: string, index: number) => void;
  readonly layerReady: (image: string, index: number) => void;
}

const parsed = (reference: string): ImageReference => {
  const result = parseImageReference(reference);
  if (!result.ok) throw new FailureError('InvalidField', result.failure);
  return result.value;
};

const download = async (
  shop: PullShop,
  registry: Registry,
  descriptor: Descriptor,
  onBegun: () => void,
  signal: AbortSignal,
): Promise<void> => {
  const { digest, sizeBytes } = descriptor;
  if (await shop.blobs.has(digest)) return;
  const partial = await shop.blobs.openPartial(digest, sizeBytes);
  onBegun();
  const tell = (): void => shop.onDownloaded(digest, partial.totalBytes(), sizeBytes);
  const told = (write: (chunk: Buffer) => void) => (chunk: Buffer) => {
    write(chunk);
    shop.passed(chunk.length);
    tell();
  };
  const sink: BlobSink = {
    ...partial,
    write: told(partial.write),
    piece: (from) => {
      const piece = partial.piece(from);
      return { ...piece, write: told(piece.write) };
    },
  };
  try {
    await registry.fetchBlob(descriptor, sink, signal);
  } finally {
    partial.close();
  }
};

/** Throws FailureError, or the signal's reason. What was downloaded stays for the next attempt either way. */
export const pullImage = async (
  shop: PullShop,
  request: AskedPull,
  observer: PullObserver,
  signal: AbortSignal,
): Promise<ImageContent> => {
  const { registryConfigDirs, mirrorCredentials, platform, maxConcurrentDownloads, limits } = shop.options;
  const reference = parsed(request.reference);
  const endpoints = await findEndpoints(registryConfigDirs, reference.host);
  const { credentials, isHere } = request;
  const trust = { credentials, mirrorCredentials };
  const registry = createRegistry({ reference, endpoints, ...trust, http: shop.http, retry: limits });
  const resolved = await registry.resolve(isHere, signal);
  const turn = createSemaphore(maxConcurrentDownloads);
  const way = JSON.stringify([reference.host, reference.path, credentials]);
  const repoTag = repoTagOf(reference);
  return await bringImage({
    target: resolved.digest,
    blobs: shop.blobs,
    platform,
    names: {
      repoTags: repoTag === null ? [] : [repoTag],
      repoDigests: [repoDigestOf(reference, resolved.digest)],
    },
    source: {
      fetchDocument: async (digest) => {
        observer.fetching();
        const isThere = resolved.document !== null && digest === resolved.digest;
        return isThere ? resolved.document : await registry.fetchDocument({ digest }, signal);
      },
      fetchConfig: (descriptor) => registry.fetchConfig(descriptor, signal),
      fetchLayer: (descriptor, onBegun) =>
        turn(signal, () =>
          // Only who does download counts at the registry, not those who wait for the same layer.
          shop.downloads({ key: descriptor.digest, way }, signal, (shared) =>
            shop.turnAt(reference.host)(shared, () => download(shop, registry, descriptor, onBegun, shared)),
          ),
        ),
    },
    observer: {
      layers: (layers) => observer.layers(resolved.digest, layers),
      layerBegun: (index) => observer.layerBegun(resolved.digest, index),
      layerReady: (index) => observer.layerReady(resolved.digest, index),
    },
  });
};
