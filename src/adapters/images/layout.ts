/**
 * Where things are below the root directory. Blobs are named by their digest, unpacked layers by the start of their
 * chain id, so that 60 of them fit into the one page that mount(2) takes for lowerdir. Pure; what is not a digest or
 * an id never becomes part of a path.
 */
import { join } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { isDigest } from '../../domain/image/reference.ts';

export interface ImageLayout {
  /** The boot in which what is not marked as on the disk was written. */
  readonly boot: string;
  /** Whole, verified blobs: <hex>. */
  readonly blobs: string;
  /** What is being downloaded, <hex>.partial with <hex>.arrivals and <hex>.pieces, and archives that are being received. */
  readonly ingest: string;
  /** Whole, unpacked layers: <name>/fs, with <name>/info.json beside it. */
  readonly snapshots: string;
  /** Layers that are being unpacked; nothing here outlives its child process. */
  readonly unpack: string;
  /** An empty directory. */
  readonly nothing: string;
  /** What is about to be removed. */
  readonly trash: string;
  /** Writable layers: <containerId>/fs and <containerId>/work. */
  readonly containers: string;
}

export const imageLayout = (root: string): ImageLayout => {
  const images = join(root, 'images');
  return {
    boot: join(images, 'boot'),
    blobs: join(images, 'blobs', 'sha256'),
    ingest: join(images, 'ingest'),
    snapshots: join(images, 'snapshots'),
    unpack: join(images, 'unpack'),
    nothing: join(images, 'nothing'),
    trash: join(images, 'trash'),
    containers: join(root, 'containers'),
  };
};

const SNAPSHOT_NAME_DIGITS = 16;
const DIGEST_PREFIX = 'sha256:';
const CONTAINER_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

const PARTIAL_SUFFIX = '.partial';
/** How far a download has come, for who reads it meanwhile. */
const ARRIVALS_SUFFIX = '.arrivals';
/** Which bytes of it are there, when they do not come in their order. */
const PIECES_SUFFIX = '.pieces';
/** The file is of a download that a later attempt goes on with. */
export const isResumable = (name: string): boolean =>
  [PARTIAL_SUFFIX, PIECES_SUFFIX].some((suffix) => name.endsWith(suffix));
/** A file that is worth nothing to anybody but its writer. */
export const WRITING_SUFFIX = '.writing';
export const LAYER_DIR = 'fs';
export const INFO_FILE = 'info.json';

/** The hex digits of a digest or chain id. Throws FailureError HostFailed for anything else. */
const hexOf = (digest: string): string => {
  if (!isDigest(digest)) throw new FailureError('HostFailed', `${JSON.stringify(digest)} is not a sha256 digest.`);
  return digest.slice(DIGEST_PREFIX.length);
};

export const digestOfHex = (hex: string): string => `${DIGEST_PREFIX}${hex}`;

export const blobPath = (layout: ImageLayout, digest: string): string => join(layout.blobs, hexOf(digest));

export const partialPath = (layout: ImageLayout, digest: string): string =>
  join(layout.ingest, `${hexOf(digest)}${PARTIAL_SUFFIX}`);

export const arrivalsPath = (layout: ImageLayout, digest: string): string =>
  join(layout.ingest, `${hexOf(digest)}${ARRIVALS_SUFFIX}`);

export const piecesPath = (layout: ImageLayout, digest: string): string =>
  join(layout.ingest, `${hexOf(digest)}${PIECES_SUFFIX}`);

export const snapshotName = (chainId: string): string => hexOf(chainId).slice(0, SNAPSHOT_NAME_DIGITS);

export const snapshotDir = (layout: ImageLayout, chainId: string): string =>
  join(layout.snapshots, snapshotName(chainId));

/** The directory that overlayfs mounts. */
export const layerDir = (layout: ImageLayout, chainId: string): string => join(snapshotDir(layout, chainId), LAYER_DIR);

/** The directory of a container's writable layer. Throws FailureError HostFailed for what is no id. */
export const containerDir = (layout: ImageLayout, containerId: string): string => {
  if (!CONTAINER_ID.test(containerId)) {
    throw new FailureError('HostFailed', `${JSON.stringify(containerId)} is not a container id.`);
  }
  return join(layout.containers, containerId);
};
