/** Makes images as registries have them, out of layer archives: blobs by digest, a config and a manifest. */
import { createHash } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';

export const sha256 = (bytes: Buffer | string): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export interface BuiltImage {
  readonly blobs: ReadonlyMap<string, Buffer>;
  readonly manifest: Buffer;
  readonly manifestType: string;
  readonly digest: string;
  readonly config: Buffer;
  readonly diffIds: readonly string[];
  readonly layers: readonly { readonly digest: string; readonly size: number }[];
}

export interface LayerOptions {
  readonly tar: Buffer;
  readonly compression?: 'gzip' | 'zstd' | 'none';
}

const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
export const platform = { os: 'linux', architecture };

const compress = ({ tar, compression = 'gzip' }: LayerOptions): Buffer => {
  if (compression === 'none') return tar;
  return compression === 'gzip' ? gzipSync(tar, { level: 1 }) : zstdCompressSync(tar);
};

const suffixes = { gzip: '+gzip', zstd: '+zstd', none: '' } as const;

export const buildImage = (
  layerOptions: readonly LayerOptions[],
  options: {
    readonly config?: Record<string, unknown>;
    readonly os?: string;
    readonly architecture?: string;
    readonly docker?: boolean;
    readonly manifestExtra?: Record<string, unknown>;
    readonly diffIds?: readonly string[];
    readonly layerExtra?: Record<string, unknown>;
  } = {},
): BuiltImage => {
  const blobs = new Map<string, Buffer>();
  const add = (bytes: Buffer): string => {
    const digest = sha256(bytes);
    blobs.set(digest, bytes);
    return digest;
  };
  const docker = options.docker === true;
  const diffIds = options.diffIds ?? layerOptions.map(({ tar }) => sha256(tar));
  const layers = layerOptions.map((layer) => {
    const blob = compress(layer);
    const compression = layer.compression ?? 'gzip';
    const mediaType = docker
      ? `application/vnd.docker.image.rootfs.diff.tar${compression === 'gzip' ? '.gzip' : ''}`
      : `application/vnd.oci.image.layer.v1.tar${suffixes[compression]}`;
    return { mediaType, digest: add(blob), size: blob.length, ...options.layerExtra };
  });
  const config = Buffer.from(
    JSON.stringify({
      architecture: options.architecture ?? architecture,
      os: options.os ?? 'linux',
      config: options.config ?? { Cmd: ['/bin/sh'] },
      rootfs: { type: 'layers', diff_ids: diffIds },
    }),
  );
  const manifestType = docker
    ? 'application/vnd.docker.distribution.manifest.v2+json'
    : 'application/vnd.oci.image.manifest.v1+json';
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      config: {
        mediaType: docker
          ? 'application/vnd.docker.container.image.v1+json'
          : 'application/vnd.oci.image.config.v1+json',
        digest: add(config),
        size: config.length,
      },
      layers,
      ...options.manifestExtra,
    }),
  );
  return { blobs, manifest, manifestType, digest: sha256(manifest), config, diffIds, layers };
};

/** An index over images for several platforms. */
export const buildIndex = (
  entries: readonly {
    readonly image: BuiltImage;
    /** What is left out, the index does not say. */
    readonly os?: string;
    readonly architecture?: string;
    readonly variant?: string;
  }[],
): { readonly manifest: Buffer; readonly manifestType: string; readonly digest: string } => {
  const manifestType = 'application/vnd.oci.image.index.v1+json';
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: manifestType,
      manifests: entries.map(({ image, os, architecture, variant }) => ({
        mediaType: image.manifestType,
        digest: image.digest,
        size: image.manifest.length,
        ...(os === undefined ? {} : { platform: { os, architecture, ...(variant === undefined ? {} : { variant }) } }),
      })),
    }),
  );
  return { manifest, manifestType, digest: sha256(manifest) };
};
