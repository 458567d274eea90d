/**
 * From a manifest's digest to a whole image: the documents on the way, the layers' names, what is recorded of it. The
 * same for registries and archives, which differ in where documents and blobs come from.
 */
import type { ImageContent, ImageLayer } from '../../../domain/model/image-content.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import type { BlobStore } from '../blob-store.ts';
import { chainIdsOf, sha256Of } from '../chain-ids.ts';
import {
  checkPlatform,
  type ConfigDocument,
  type Descriptor,
  DOCUMENT_BYTES_MAX,
  type Manifest,
  parseConfig,
  parseDocument,
  selectManifests,
} from '../documents.ts';
import { invalidImage } from '../invalid-image.ts';
import type { Platform } from '../types.ts';

/** Where one image's content comes from. All of it is verified by its digest before it is given out. */
export interface ImageSource {
  readonly fetchDocument: (digest: string) => Promise<{ readonly bytes: Buffer; readonly mediaType: string }>;
  readonly fetchConfig: (descriptor: Descriptor) => Promise<Buffer>;
  /** Resolves once the blob is in the store. `onBegun` is told when it can be read as it comes. */
  readonly fetchLayer: (descriptor: Descriptor, onBegun: () => void) => Promise<void>;
}

/** What becomes of an image on its way. */
export interface ImageObserver {
  readonly layers: (layers: readonly ImageLayer[]) => void;
  /** Its blob is on its way; not told of one that is there already, or that another pull waits for. */
  readonly layerBegun: (index: number) => void;
  readonly layerReady: (index: number) => void;
}

const INDEX_DEPTH_MAX = 3;

interface FoundManifest {
  readonly manifest: Manifest;
  readonly digest: string;
  /** The manifest and the indexes that lead to it. */
  readonly blobs: readonly string[];
}

/** A document as the store has it; one that the disk has damaged is taken out, so that it is fetched anew. */
const storedDocument = async (digest: string, blobs: BlobStore): Promise<Buffer | null> => {
  if (!(await blobs.has(digest))) return null;
  const bytes = await blobs.read(digest, DOCUMENT_BYTES_MAX);
  if (sha256Of(bytes) === digest) return bytes;
  blobs.remove(digest);
  return null;
};

/** A document from the store when it is there already, else from where the image comes from. */
const readDocument = async (
  digest: string,
  source: ImageSource,
  blobs: BlobStore,
): Promise<{ readonly bytes: Buffer; readonly mediaType: string }> => {
  const stored = await storedDocument(digest, blobs);
  return stored === null ? await source.fetchDocument(digest) : { bytes: stored, mediaType: '' };
};

/** Manifests that say nothing of a size are taken, as containerd takes them. */
const checkSize = (what: string, bytes: Buffer, sizeBytes: number, teller: string): void => {
  if (sizeBytes !== 0 && sizeBytes !== bytes.length)
    throw invalidImage(`its ${what} has ${bytes.length} bytes and its ${teller} says ${sizeBytes}`);
};

const readConfig = async (descriptor: Descriptor, source: ImageSource, blobs: BlobStore): Promise<ConfigDocument> => {
  const bytes = (await storedDocument(descriptor.digest, blobs)) ?? (await source.fetchConfig(descriptor));
  checkSize('config', bytes, descriptor.sizeBytes, 'manifest');
  const config = parseConfig(bytes);
  await blobs.put(bytes);
  return config;
};

/** What a manifest is looked for in, and for which machine. */
type Search = Pick<BringOptions, 'source' | 'blobs' | 'platform'>;

/** How an index refers to a document, or whoever asks for the image does: without a type and a size. */
type Referred = Pick<Descriptor, 'digest' | 'mediaType' | 'sizeBytes'>;

/** From a document on that may be an index, and lies below so many of them. */
const findManifest = async (
  { digest, mediaType: claimedType, sizeBytes }: Referred,
  search: Search,
  depth: number,
): Promise<FoundManifest> => {
  const { source, blobs, platform } = search;
  if (depth > INDEX_DEPTH_MAX) throw invalidImage('its indexes lead to indexes again and again');
  const { bytes, mediaType } = await readDocument(digest, source, blobs);
  checkSize('manifest', bytes, sizeBytes, 'index');
  const document = parseDocument(bytes, claimedType || mediaType);
  await blobs.put(bytes);
  if (document.kind === 'manifest') return { manifest: document, digest, blobs: [digest] };
  const found = await findAmong(selectManifests(document, platform), search, depth + 1);
  return { ...found, blobs: [digest, ...found.blobs] };
};

/** The first whose config is of this machine; one that is alone is taken as it is. Throws what was wrong with the last. */
async function findAmong(candidates: readonly Descriptor[], search: Search, depth: number): Promise<FoundManifest> {
  const areSeveral = candidates.length > 1;
  // Below one of several no further index is gone into, lest few documents lead to thousands.
  const below = areSeveral ? INDEX_DEPTH_MAX : depth;
  let misfit: unknown = null;
  for (const candidate of candidates) {
    try {
      const found = await findManifest(candidate, search, below);
      if (areSeveral)
        checkPlatform((await readConfig(found.manifest.config, search.source, search.blobs)).platform, search.platform);
      return found;
    } catch (error) {
      if (!(error instanceof FailureError) || error.failure.reason !== 'ImageInvalid') throw error;
      misfit = error;
    }
  }
  throw misfit;
}

const layersOf = (manifest: Manifest, config: ConfigDocument): readonly ImageLayer[] => {
  if (config.diffIds.length !== manifest.layers.length) {
    throw invalidImage(`its manifest has ${manifest.layers.length} layers and its config ${config.diffIds.length}`);
  }
  const chainIds = chainIdsOf(config.diffIds);
  return manifest.layers.map(({ digest, sizeBytes }, index) => ({
    digest,
    diffId: config.diffIds[index] ?? '',
    chainId: chainIds[index] ?? '',
    sizeBytes,
  }));
};

const isMissing = async (descriptor: Descriptor, blobs: BlobStore): Promise<readonly Descriptor[]> =>
  (await blobs.has(descriptor.digest)) ? [] : [descriptor];

/**
 * Fetches layers side by side, each blob once, and tells of them as soon as `named` says which layers they are. They are on
 * their way before the config is, which alone knows that; but for the largest, which waits for the config's connection:
 * another one to the same server takes three turns of the link before it is of use.
 *
 * @returns  resolves once all of them are in the store and told of
 */
const fetchLayers = async (
  descriptors: readonly Descriptor[],
  { source, blobs, observer }: Pick<BringOptions, 'source' | 'blobs' | 'observer'>,
  named: Promise<void>,
): Promise<void> => {
  // Whoever reads the config hears of its failure; there may be no layer that waits for it.
  named.catch(() => undefined);
  const missing = (await Promise.all(descriptors.map((descriptor) => isMissing(descriptor, blobs)))).flat();
  const largest = missing.toSorted((a, b) => b.sizeBytes - a.sizeBytes)[0]?.digest;
  const fetching = new Map<string, Promise<void>>();
  const fetch = async (descriptor: Descriptor): Promise<void> => {
    const { digest } = descriptor;
    if (!missing.some((one) => one.digest === digest)) return;
    if (digest === largest) await named;
    const tellBegun = (): void =>
      descriptors.forEach((one, index) => one.digest === digest && observer.layerBegun(index));
    await source.fetchLayer(descriptor, () => void named.then(tellBegun, () => undefined));
  };
  await Promise.all(
    descriptors.map(async (descriptor, index) => {
      // An image may have one blob as several of its layers.
      const fetched = fetching.get(descriptor.digest) ?? fetch(descriptor);
      fetching.set(descriptor.digest, fetched);
      await fetched;
      await named;
      observer.layerReady(index);
    }),
  );
};

interface BringOptions {
  readonly target: string;
  readonly source: ImageSource;
  readonly blobs: BlobStore;
  readonly platform: Platform;
  readonly names: Pick<ImageContent, 'repoTags' | 'repoDigests'>;
  readonly observer: ImageObserver;
}

/**
 * Brings the image behind `target` into the store and says what it is; names are the caller's to give. Config and layers are
 * fetched side by side, so that whatever bounds them is in the source. When one fails the others are left to the source's
 * signal, which the caller aborts.
 */
export const bringImage = async (options: BringOptions): Promise<ImageContent> => {
  const { target, source, blobs, platform, names, observer } = options;
  const found = await findManifest({ digest: target, mediaType: '', sizeBytes: 0 }, options, 0);
  const { config: configDescriptor, layers: descriptors } = found.manifest;
  const reading = readConfig(configDescriptor, source, blobs).then((config) => {
    checkPlatform(config.platform, platform);
    const layers = layersOf(found.manifest, config);
    observer.layers(layers);
    return { config, layers };
  });
  const fetched = fetchLayers(
    descriptors,
    options,
    reading.then(() => undefined),
  );
  const [{ config, layers }] = await Promise.all([reading, fetched]);
  return {
    id: configDescriptor.digest,
    manifestDigest: found.digest,
    ...names,
    sizeBytes: layers.reduce((sum, { sizeBytes }) => sum + sizeBytes, configDescriptor.sizeBytes),
    config: config.config,
    layers,
    blobs: [...new Set([...found.blobs, configDescriptor.digest, ...layers.map(({ digest }) => digest)])],
  };
};
