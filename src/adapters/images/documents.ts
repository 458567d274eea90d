/**
 * Manifests, indexes and image configs (OCI image-spec 1.1, Docker image manifest V2 schema 2): hostile JSON in, the
 * few fields that are used out. Pure. Refuses documents that could be read in two ways (an index that is also a
 * manifest, a document that contradicts its own media type) and everything larger than its bound. Of zod it takes the small
 * half, since a pull may have to wait until all this is loaded.
 */
import * as z from 'zod/mini';
import { IMAGE_VOLUMES_MAX, type ImageConfig } from '../../domain/model/image-content.ts';
import { isDigest } from '../../domain/image/reference.ts';
import { isObject } from '../../domain/values/json.ts';
import { idOf, isNumber, LAST_ID } from '../../domain/values/user-ids.ts';
import { invalidImage } from './invalid-image.ts';
import type { Platform } from './types.ts';

/** A blob as documents refer to it. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly sizeBytes: number;
  readonly platform: Platform | null;
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
  octets: 'application/octet-stream',
} as const;

const indexTypes: ReadonlySet<string> = new Set([MediaType.ociIndex, MediaType.dockerIndex]);
const manifestTypes: ReadonlySet<string> = new Set([MediaType.ociManifest, MediaType.dockerManifest]);
/** Octets is what some manifests call the configs of old images (docker/distribution issue 1622); one of something else does not parse. */
const configTypes: ReadonlySet<string> = new Set([MediaType.ociConfig, MediaType.dockerConfig, MediaType.octets]);
const schema1Types: ReadonlySet<string> = new Set([
  'application/vnd.docker.distribution.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v1+prettyjws',
]);
/** How a layer is compressed is seen from its first bytes, so only that it is a plain tar of some kind matters. */
const LAYER_TYPE =
  /^application\/vnd\.(?:oci\.image\.layer\.(?:nondistributable\.)?v1\.tar|docker\.image\.rootfs\.(?:foreign\.)?diff\.tar)(?:[.+](?:gzip|zstd))?$/;

/** For the Accept header, what is preferred first. */
export const acceptedDocuments: string = [...indexTypes, ...manifestTypes].join(', ');

/** A media type for messages: it is hostile text. */
const shown = (text: string): string => JSON.stringify(text.slice(0, 100));

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const as = <T extends z.ZodMiniType, R>(schema: T, read: (value: z.output<T>) => R) =>
  z.pipe(schema, z.transform<z.output<T>, R>(read));

/** What is not there, or null, is `otherwise`. */
const given = <T extends z.ZodMiniType, R extends z.output<T>>(schema: T, otherwise: R) =>
  as(z.nullish(schema), (value): z.output<T> => value ?? otherwise);

/** `field` names it in messages: "User of its config". What is not there is "". */
const textOf = (field: string) => given(z.string(`${field} is not text`), '');

/** One issue for a whole list, however many of its entries are no texts. */
const textsOf = (field: string) => given(z.custom<readonly string[]>(isTexts, `${field} is not a list of texts`), []);

/** Its length is looked at before its entries are. */
const listOf = <T extends z.ZodMiniType>(field: string, entry: T, max: number, tooMany: string) =>
  z.pipe(given(z.array(z.unknown(), `${field} is not a list`).check(z.maxLength(max, tooMany)), []), z.array(entry));

/** What is no object there says nothing. */
const ifObject = <T extends z.ZodMiniType<unknown, Record<string, unknown>>>(schema: T) =>
  as(
    z.optional(
      z.pipe(
        z.transform((value: unknown) => (isObject(value) ? value : null)),
        z.nullable(schema),
      ),
    ),
    (value) => value ?? null,
  );

/** What some builders write instead of Go's words for it. */
const ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['x86_64', 'amd64'],
  ['x86-64', 'amd64'],
  ['aarch64', 'arm64'],
]);

/** Of a platform, in the words that it is compared with. */
const osOf = (field: string) => as(textOf(field), (name) => name.toLowerCase());
const architectureOf = (field: string) => as(osOf(field), (name) => ARCHITECTURES.get(name) ?? name);

const platformSchema = z.object({
  os: osOf('os of its platform'),
  architecture: architectureOf('architecture of its platform'),
  variant: textOf('variant of its platform'),
});

const annotationsOf = (value: unknown): ReadonlyMap<string, string> => {
  const pairs = isObject(value) ? Object.entries(value) : [];
  return new Map(pairs.filter((pair): pair is [string, string] => typeof pair[1] === 'string'));
};

/** A digest by any algorithm, as OCI's image-spec writes it. */
const SOME_DIGEST = /^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[\w=-]+$/;

const isSomeDigest = (text: string): boolean => SOME_DIGEST.test(text);

const descriptorOf = (what: string, isNamed = isDigest) => {
  const noSize = `its ${what} has no size between 0 and ${BLOB_BYTES_MAX} bytes`;
  const schema = z.object(
    {
      digest: textOf(`digest of its ${what}`).check(z.refine(isNamed, `its ${what} has no sha256 digest`)),
      size: z.int(noSize).check(z.minimum(0, noSize), z.maximum(BLOB_BYTES_MAX, noSize)),
      mediaType: textOf(`mediaType of its ${what}`),
      platform: ifObject(platformSchema),
      annotations: as(z.optional(z.unknown()), annotationsOf),
      urls: as(textsOf(`urls of its ${what}`), (urls) => urls.slice(0, URLS_MAX)),
    },
    `its ${what} is not described`,
  );
  return as(schema, ({ size: sizeBytes, ...rest }): Descriptor => ({ ...rest, sizeBytes }));
};

const layerSchema = descriptorOf('layer').check(
  z.refine(({ mediaType }) => LAYER_TYPE.test(mediaType), {
    error: ({ input }) => `it has a layer of type ${shown((input as Descriptor).mediaType)}, not a file system layer`,
  }),
);

const configDescriptorSchema = descriptorOf('config').check(
  z.refine(({ mediaType }) => configTypes.has(mediaType), {
    error: ({ input }) =>
      `its config is of type ${shown((input as Descriptor).mediaType)}, so it is no container image`,
  }),
);

const indexSchema = z.object({
  manifests: listOf(
    'manifests of its index',
    // Those by other algorithms are for others: only what is chosen must be by one that is known here.
    descriptorOf('manifest', isSomeDigest),
    MANIFESTS_MAX,
    `its index has more than ${MANIFESTS_MAX} entries`,
  ),
});

const manifestSchema = z.object({
  config: configDescriptorSchema,
  layers: listOf('layers of its manifest', layerSchema, LAYERS_MAX, `it has more than ${LAYERS_MAX} layers`),
});

const mediaTypeSchema = z.object({ mediaType: textOf('mediaType of its manifest') });

const configSchema = z.object({
  os: osOf('os of its config'),
  architecture: architectureOf('architecture of its config'),
  rootfs: ifObject(
    z.object({
      diff_ids: textsOf('diff_ids of its config').check(
        z.refine((ids) => ids.every(isDigest), 'its config names layers by something that is no sha256 digest'),
      ),
    }),
  ),
  config: ifObject(
    z.object({
      User: textOf('User of its config'),
      WorkingDir: textOf('WorkingDir of its config'),
      StopSignal: textOf('StopSignal of its config'),
      Env: textsOf('Env of its config'),
      Entrypoint: textsOf('Entrypoint of its config'),
      Cmd: textsOf('Cmd of its config'),
      Volumes: as(z.optional(z.unknown()), (value) => (isObject(value) ? Object.keys(value) : [])),
    }),
  ),
});

/** `claimed`: its media type, as somebody calls it, or "". */
const parseJson = (bytes: Buffer, what: string, claimed = ''): object => {
  if (bytes.length > DOCUMENT_BYTES_MAX) throw invalidImage(`its ${what} is larger than ${DOCUMENT_BYTES_MAX} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw invalidImage(`its ${what} is not JSON${claimed === '' ? '' : ` but said to be ${shown(claimed)}`}`);
  }
  if (!isObject(value)) throw invalidImage(`its ${what} is not a JSON object`);
  return value;
};

/** The messages of the schemas here say what of the image is not valid. */
const read = <T>(schema: z.ZodMiniType<T>, document: object): T => {
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  throw invalidImage(parsed.error.issues[0]?.message ?? 'it is not as it must be');
};

const refuseSchema1 = (document: object, claimedType: string): void => {
  const isFirst = 'schemaVersion' in document && document.schemaVersion === 1;
  if (schema1Types.has(claimedType) || isFirst || Object.hasOwn(document, 'fsLayers')) {
    throw invalidImage(
      'it is in Docker schema 1, a form that is not supported any more: push it again with a current tool',
    );
  }
};

/**
 * Parses an index or a manifest. `claimedType` is what the registry or the referring document calls it, or "".
 * Throws FailureError ImageInvalid for anything else, and for documents of more than one meaning.
 */
export const parseDocument = (bytes: Buffer, claimedType: string): Index | Manifest => {
  const document = parseJson(bytes, 'manifest', claimedType);
  refuseSchema1(document, claimedType);
  const { mediaType: ownType } = read(mediaTypeSchema, document);
  const hasManifests = Object.hasOwn(document, 'manifests');
  const hasLayers = Object.hasOwn(document, 'layers') || Object.hasOwn(document, 'config');
  if (hasManifests === hasLayers) throw invalidImage('its manifest is not clearly an index or a manifest');
  const matching = hasManifests ? indexTypes : manifestTypes;
  const contrary = hasManifests ? manifestTypes : indexTypes;
  if (ownType !== '' && !matching.has(ownType)) throw invalidImage(`its manifest calls itself ${shown(ownType)}`);
  if (contrary.has(claimedType)) throw invalidImage(`its manifest is not the ${shown(claimedType)} it is said to be`);
  return hasManifests
    ? { kind: 'index', ...read(indexSchema, document) }
    : { kind: 'manifest', ...read(manifestSchema, document) };
};

/** A number that no id can be is no name of anybody either: neither a wrapped id nor a user of that name is meant. */
const checkUser = (user: string): void => {
  for (const part of user.split(':')) {
    if (isNumber(part) && idOf(part) === null)
      throw invalidImage(`User of its config holds ${shown(part)}: ids go from 0 to ${LAST_ID}`);
  }
};

/** One empty word takes back what the image below it said, for Dockerfiles have no other way: it is no program. */
const isTakenBack = (entrypoint: readonly string[]): boolean => entrypoint.length === 1 && entrypoint[0] === '';

const imageConfigOf = (fields: z.output<typeof configSchema>['config']): ImageConfig => {
  if (fields === null) return {};
  const { User: user, Env: env, Entrypoint: entrypoint, Cmd: cmd, WorkingDir: workingDir } = fields;
  const { StopSignal: stopSignal, Volumes: volumes } = fields;
  checkUser(user);
  if (volumes.length > IMAGE_VOLUMES_MAX) {
    throw invalidImage(`its config declares ${volumes.length} volumes, more than ${IMAGE_VOLUMES_MAX}`);
  }
  const config: ImageConfig = {
    ...(user === '' ? {} : { user }),
    ...(env.length === 0 ? {} : { env }),
    ...(entrypoint.length === 0 || isTakenBack(entrypoint) ? {} : { entrypoint }),
    ...(cmd.length === 0 ? {} : { cmd }),
    ...(workingDir === '' ? {} : { workingDir }),
    ...(volumes.length === 0 ? {} : { volumes }),
    ...(stopSignal === '' ? {} : { stopSignal }),
  };
  // It is recorded with every container that is made from the image.
  if (Buffer.byteLength(JSON.stringify(config)) > CONFIG_FIELDS_BYTES_MAX) {
    throw invalidImage(`what its config says of processes is larger than ${CONFIG_FIELDS_BYTES_MAX} bytes`);
  }
  return config;
};

/** Parses an image config. Throws FailureError ImageInvalid. */
export const parseConfig = (bytes: Buffer): ConfigDocument => {
  const { os, architecture, rootfs, config } = read(configSchema, parseJson(bytes, 'config'));
  return { platform: { os, architecture }, diffIds: rootfs?.diff_ids ?? [], config: imageConfigOf(config) };
};

/** What is meant where no variant is named. */
const PLAIN_LEVELS: Readonly<Record<string, number>> = { arm64: 8, arm: 7 };
const levelOf = (variant: string, architecture: string): number =>
  variant === '' ? (PLAIN_LEVELS[architecture] ?? 1) : Number(/^v?(\d+(?:\.\d+)?)$/.exec(variant)?.[1] ?? Infinity);

/** Higher is better; 0 does not run here. A later variant than the wanted one may need what this machine has not. */
const fitness = (found: Descriptor['platform'], wanted: Platform): number => {
  if (found === null || found.os !== wanted.os || found.architecture !== wanted.architecture) return 0;
  const [level, wantedLevel] = [found, wanted].map(({ variant = '' }) => levelOf(variant, wanted.architecture));
  return level !== undefined && wantedLevel !== undefined && level <= wantedLevel ? 1 + level : 1;
};

/** Of those that do not say for which machine they are: each has to be fetched to be known. */
const UNLABELLED_MAX = 16;

/**
 * The manifest of an index for this machine; where none says so, those that do not say at all, whose configs may, in their
 * order. At least one. Throws FailureError ImageInvalid when there is none of either.
 */
export const selectManifests = ({ manifests }: Index, wanted: Platform): readonly Descriptor[] => {
  const known = manifests.filter(({ digest }) => isDigest(digest));
  if (known.length === 0 && manifests.length > 0) throw invalidImage('its manifest has no sha256 digest');
  return selectAmong(known, wanted);
};

const selectAmong = (manifests: readonly Descriptor[], wanted: Platform): readonly Descriptor[] => {
  const best = manifests.reduce<{ readonly fit: number; readonly manifest: Descriptor | null }>(
    (chosen, manifest) => {
      const fit = fitness(manifest.platform, wanted);
      return fit > chosen.fit ? { fit, manifest } : chosen;
    },
    { fit: 0, manifest: null },
  );
  if (best.manifest !== null) return [best.manifest];
  if (manifests.length === 0) throw invalidImage('its index names no manifest');
  const unlabelled = manifests.filter(({ platform }) => platform === null);
  if (unlabelled.length > 0) return unlabelled.slice(0, UNLABELLED_MAX);
  const offered = manifests.flatMap(({ platform }) =>
    platform === null ? [] : `${platform.os}/${platform.architecture}`,
  );
  const shownOffer = [...new Set(offered)]
    .slice(0, 10)
    .join(', ')
    .replace(/[^\w/., -]/g, '?');
  throw invalidImage(`it is not made for ${wanted.os}/${wanted.architecture}, only for ${shownOffer || 'no platform'}`);
};

/** Throws FailureError ImageInvalid when the config says that the image is for another kind of machine. */
export const checkPlatform = (found: Platform, wanted: Platform): void => {
  const os = found.os === '' ? wanted.os : found.os;
  const architecture = found.architecture === '' ? wanted.architecture : found.architecture;
  if (os === wanted.os && architecture === wanted.architecture) return;
  throw invalidImage(
    `it is made for ${shown(`${os}/${architecture}`)} and this machine is ${wanted.os}/${wanted.architecture}`,
  );
};
