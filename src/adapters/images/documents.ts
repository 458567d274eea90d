/**
 * Manifests, indexes and image configs (OCI image-spec 1.1, Docker image manifest V2 schema 2): hostile JSON in, the
 * few fields that are used out. Pure. What could be read in two ways (an index that is also a manifest, a document
 * that contradicts its own media type) is refused, and so is everything larger than its bound.
 */
import { IMAGE_VOLUMES_MAX, type ImageConfig } from '../../domain/model/image-content.ts';
import { FailureError } from '../../domain/model/errors.ts';
import { isDigest } from '../../domain/image/reference.ts';
import { idOf, isNumber, LAST_ID } from '../../domain/values/user-ids.ts';
import type { Platform } from './types.ts';

/** A blob as documents refer to it. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly platform: (Platform & { readonly variant: string }) | null;
  readonly annotations: ReadonlyMap<string, string>;
  /** Where a layer may be had when its registry does not have it. */
  readonly urls: readonly string[];
}

export interface Index {
  readonly kind: 'index';
  readonly manifests: readonly Descriptor[];
}

export interface Manifest {
  readonly kind: 'manifest';
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

export interface ConfigDocument {
  /** Empty strings where the config does not say. */
  readonly platform: Platform;
  readonly diffIds: readonly string[];
  readonly config: ImageConfig;
}

export const DOCUMENT_BYTES_MAX = 4 * 1024 * 1024;
const CONFIG_FIELDS_BYTES_MAX = 256 * 1024;
const BLOB_BYTES_MAX = 64 * 1024 ** 3;
const LAYERS_MAX = 127;
const MANIFESTS_MAX = 10_000;
const URLS_MAX = 4;

export const MediaType = {
  ociIndex: 'application/vnd.oci.image.index.v1+json',
  ociManifest: 'application/vnd.oci.image.manifest.v1+json',
  ociConfig: 'application/vnd.oci.image.config.v1+json',
  dockerIndex: 'application/vnd.docker.distribution.manifest.list.v2+json',
  dockerManifest: 'application/vnd.docker.distribution.manifest.v2+json',
  dockerConfig: 'application/vnd.docker.container.image.v1+json',
  dockerTar: 'application/vnd.docker.image.rootfs.diff.tar',
} as const;

const indexTypes: ReadonlySet<string> = new Set([MediaType.ociIndex, MediaType.dockerIndex]);
const manifestTypes: ReadonlySet<string> = new Set([MediaType.ociManifest, MediaType.dockerManifest]);
const configTypes: ReadonlySet<string> = new Set([MediaType.ociConfig, MediaType.dockerConfig]);
const schema1Types: ReadonlySet<string> = new Set([
  'application/vnd.docker.distribution.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v1+prettyjws',
]);
/** How a layer is compressed is seen from its first bytes, so only that it is a plain tar of some kind matters. */
const LAYER_TYPE =
  /^application\/vnd\.(?:oci\.image\.layer\.(?:nondistributable\.)?v1\.tar|docker\.image\.rootfs\.(?:foreign\.)?diff\.tar)(?:[.+](?:gzip|zstd))?$/;

/** For the Accept header, what is preferred first. */
export const acceptedDocuments: string = [...indexTypes, ...manifestTypes].join(', ');

type Json = Record<string, unknown>;

const invalid = (what: string): FailureError => new FailureError('ImageInvalid', `The image is not valid: ${what}.`);

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A media type for messages: it is hostile text. */
const shown = (text: string): string => JSON.stringify(text.slice(0, 100));

const parseJson = (bytes: Buffer, what: string): Json => {
  if (bytes.length > DOCUMENT_BYTES_MAX) throw invalid(`its ${what} is larger than ${DOCUMENT_BYTES_MAX} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw invalid(`its ${what} is not JSON`);
  }
  if (!isObject(value)) throw invalid(`its ${what} is not a JSON object`);
  return value;
};

const own = (object: Json, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);

const text = (object: Json, key: string, what: string): string => {
  const value = own(object, key) ?? '';
  if (typeof value !== 'string') throw invalid(`${key} of its ${what} is not text`);
  return value;
};

const list = (object: Json, key: string, what: string): readonly unknown[] => {
  const value = own(object, key) ?? [];
  if (!Array.isArray(value)) throw invalid(`${key} of its ${what} is not a list`);
  return value as unknown[];
};

const texts = (object: Json, key: string, what: string): readonly string[] => {
  const values = list(object, key, what);
  if (!values.every((value) => typeof value === 'string'))
    throw invalid(`${key} of its ${what} is not a list of texts`);
  return values;
};

const parsePlatform = (value: unknown): Descriptor['platform'] => {
  if (!isObject(value)) return null;
  const what = 'platform';
  return {
    os: text(value, 'os', what),
    architecture: text(value, 'architecture', what),
    variant: text(value, 'variant', what),
  };
};

const parseAnnotations = (value: unknown): ReadonlyMap<string, string> => {
  const pairs = isObject(value) ? Object.entries(value) : [];
  return new Map(pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
};

const parseDescriptor = (value: unknown, what: string): Descriptor => {
  if (!isObject(value)) throw invalid(`its ${what} is not described`);
  const digest = text(value, 'digest', what);
  const sizeBytes = own(value, 'size');
  if (!isDigest(digest)) throw invalid(`its ${what} has no sha256 digest`);
  if (
    typeof sizeBytes !== 'number' ||
    !Number.isSafeInteger(sizeBytes) ||
    sizeBytes < 0 ||
    sizeBytes > BLOB_BYTES_MAX
  ) {
    throw invalid(`its ${what} has no size between 0 and ${BLOB_BYTES_MAX} bytes`);
  }
  return {
    mediaType: text(value, 'mediaType', what),
    digest,
    sizeBytes,
    platform: parsePlatform(own(value, 'platform')),
    annotations: parseAnnotations(own(value, 'annotations')),
    urls: texts(value, 'urls', what).slice(0, URLS_MAX),
  };
};

const parseLayer = (value: unknown): Descriptor => {
  const layer = parseDescriptor(value, 'layer');
  if (!LAYER_TYPE.test(layer.mediaType))
    throw invalid(`it has a layer of type ${shown(layer.mediaType)}, not a file system layer`);
  return layer;
};

const parseIndexFields = (document: Json): Index => {
  const manifests = list(document, 'manifests', 'index');
  if (manifests.length > MANIFESTS_MAX) throw invalid(`its index has more than ${MANIFESTS_MAX} entries`);
  return { kind: 'index', manifests: manifests.map((manifest) => parseDescriptor(manifest, 'manifest')) };
};

const parseManifestFields = (document: Json): Manifest => {
  const config = parseDescriptor(own(document, 'config'), 'config');
  if (!configTypes.has(config.mediaType)) {
    throw invalid(`its config is of type ${shown(config.mediaType)}, so it is no container image`);
  }
  const layers = list(document, 'layers', 'manifest');
  if (layers.length > LAYERS_MAX) throw invalid(`it has more than ${LAYERS_MAX} layers`);
  return { kind: 'manifest', config, layers: layers.map(parseLayer) };
};

const refuseSchema1 = (document: Json, claimedType: string): void => {
  if (schema1Types.has(claimedType) || own(document, 'schemaVersion') === 1 || Object.hasOwn(document, 'fsLayers')) {
    throw invalid('it is in Docker schema 1, a form that is not supported any more: push it again with a current tool');
  }
};

/**
 * Parses an index or a manifest. `claimedType` is what the registry or the referring document calls it, or "".
 * Throws FailureError ImageInvalid for anything else, and for documents of more than one meaning.
 */
export const parseDocument = (bytes: Buffer, claimedType: string): Index | Manifest => {
  const document = parseJson(bytes, 'manifest');
  refuseSchema1(document, claimedType);
  const ownType = text(document, 'mediaType', 'manifest');
  const hasManifests = Object.hasOwn(document, 'manifests');
  const hasLayers = Object.hasOwn(document, 'layers') || Object.hasOwn(document, 'config');
  if (hasManifests === hasLayers) throw invalid('its manifest is not clearly an index or a manifest');
  const matching = hasManifests ? indexTypes : manifestTypes;
  const contrary = hasManifests ? manifestTypes : indexTypes;
  if (ownType !== '' && !matching.has(ownType)) throw invalid(`its manifest calls itself ${shown(ownType)}`);
  if (contrary.has(claimedType)) throw invalid(`its manifest is not the ${shown(claimedType)} it is said to be`);
  return hasManifests ? parseIndexFields(document) : parseManifestFields(document);
};

/** A number that no id can be is no name of anybody either: neither a wrapped id nor a user of that name is meant. */
const checkUser = (user: string): void => {
  for (const part of user.split(':')) {
    if (isNumber(part) && idOf(part) === null)
      throw invalid(`User of its config holds ${shown(part)}: ids go from 0 to ${LAST_ID}`);
  }
};

const parseConfigFields = (document: Json): ImageConfig => {
  const value = own(document, 'config');
  const fields = isObject(value) ? value : {};
  const what = 'config';
  const user = text(fields, 'User', what);
  checkUser(user);
  const workingDir = text(fields, 'WorkingDir', what);
  const stopSignal = text(fields, 'StopSignal', what);
  const env = texts(fields, 'Env', what);
  const entrypoint = texts(fields, 'Entrypoint', what);
  const cmd = texts(fields, 'Cmd', what);
  const volumes = own(fields, 'Volumes');
  const volumePaths = isObject(volumes) ? Object.keys(volumes) : [];
  if (volumePaths.length > IMAGE_VOLUMES_MAX) {
    throw invalid(`its config declares ${volumePaths.length} volumes, more than ${IMAGE_VOLUMES_MAX}`);
  }
  const config: ImageConfig = {
    ...(user === '' ? {} : { user }),
    ...(env.length === 0 ? {} : { env }),
    ...(entrypoint.length === 0 ? {} : { entrypoint }),
    ...(cmd.length === 0 ? {} : { cmd }),
    ...(workingDir === '' ? {} : { workingDir }),
    ...(volumePaths.length === 0 ? {} : { volumes: volumePaths }),
    ...(stopSignal === '' ? {} : { stopSignal }),
  };
  // It is recorded with every container that is made from the image.
  if (Buffer.byteLength(JSON.stringify(config)) > CONFIG_FIELDS_BYTES_MAX) {
    throw invalid(`what its config says of processes is larger than ${CONFIG_FIELDS_BYTES_MAX} bytes`);
  }
  return config;
};

/** Parses an image config. Throws FailureError ImageInvalid. */
export const parseConfig = (bytes: Buffer): ConfigDocument => {
  const document = parseJson(bytes, 'config');
  const rootfs = own(document, 'rootfs');
  const diffIds = isObject(rootfs) ? texts(rootfs, 'diff_ids', 'config') : [];
  if (!diffIds.every(isDigest)) throw invalid('its config names layers by something that is no sha256 digest');
  return {
    platform: { os: text(document, 'os', 'config'), architecture: text(document, 'architecture', 'config') },
    diffIds,
    config: parseConfigFields(document),
  };
};

/** Higher is better; 0 does not run here. A later variant of amd64 may need what this machine has not. */
const fitness = (found: Descriptor['platform'], wanted: Platform): number => {
  if (found === null || found.os !== wanted.os || found.architecture !== wanted.architecture) return 0;
  const plain = wanted.architecture === 'arm64' ? 'v8' : 'v1';
  return found.variant === '' || found.variant === plain ? 2 : 1;
};

/** The manifest of an index for this machine. Throws FailureError ImageInvalid when it has none. */
export const selectManifest = (index: Index, wanted: Platform): Descriptor => {
  const best = index.manifests.reduce<{ readonly fit: number; readonly manifest: Descriptor | null }>(
    (chosen, manifest) => {
      const fit = fitness(manifest.platform, wanted);
      return fit > chosen.fit ? { fit, manifest } : chosen;
    },
    { fit: 0, manifest: null },
  );
  const [only] = index.manifests;
  const unlabelled = index.manifests.length === 1 && only?.platform === null ? only : null;
  const manifest = best.manifest ?? unlabelled;
  if (manifest !== null) return manifest;
  const offered = index.manifests.flatMap(({ platform }) =>
    platform === null ? [] : `${platform.os}/${platform.architecture}`,
  );
  const shownOffer = [...new Set(offered)]
    .slice(0, 10)
    .join(', ')
    .replace(/[^\w/., -]/g, '?');
  throw invalid(`it is not made for ${wanted.os}/${wanted.architecture}, only for ${shownOffer || 'no platform'}`);
};

/** Throws FailureError ImageInvalid when the config says that the image is for another kind of machine. */
export const checkPlatform = (found: Platform, wanted: Platform): void => {
  const os = found.os === '' ? wanted.os : found.os;
  const architecture = found.architecture === '' ? wanted.architecture : found.architecture;
  if (os === wanted.os && architecture === wanted.architecture) return;
  throw invalid(
    `it is made for ${shown(`${os}/${architecture}`)} and this machine is ${wanted.os}/${wanted.architecture}`,
  );
};
