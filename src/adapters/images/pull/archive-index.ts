/**
 * What an image archive says of itself: an OCI image layout (image-spec, image-layout.md) or what `docker save` writes.
 * Pure functions over its JSON files, which are as hostile as everything else in it. Names are only ever compared
 * with the names of the archive's own members.
 */
import * as z from 'zod';
import { FailureError } from '../../../domain/model/errors.ts';
import { parseImageReference, repoDigestOf, repoTagOf } from '../../../domain/image/reference.ts';
import { type Descriptor, MediaType, parseDocument } from '../documents.ts';
import type { Platform } from '../types.ts';

/** A member of the archive whose content is in the ingest directory, under its digest. */
export interface StoredMember {
  readonly digest: string;
  readonly sizeBytes: number;
}

/** Members by their cleaned names, with links inside the archive resolved. */
export type FindMember = (name: string) => StoredMember | null;

/** An image that the archive holds. */
export interface ArchivedImage {
  /** Digest of its manifest or index. */
  readonly target: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
}

/** Of `docker save`: an image without a manifest of its own, for which one is written. */
export interface WrittenImage {
  readonly manifest: Buffer;
  readonly repoTags: readonly string[];
}

export const OCI_INDEX_FILE = 'index.json';
export const DOCKER_MANIFEST_FILE = 'manifest.json';

const IMAGES_MAX = 1000;
const LAYERS_MAX = 127;
const TAGS_MAX = 100;

/** Annotations that name an image, the most telling first. */
const CONTAINERD_NAME = 'io.containerd.image.name';
const OCI_REF_NAME = 'org.opencontainers.image.ref.name';

export const invalidImageArchive = (what: string): FailureError =>
  new FailureError('ImageInvalid', `The image archive is not valid: ${what}.`);

const shown = (name: string): string => JSON.stringify(name.slice(0, 200));

/**
 * The name of a member in one form: "./a//b" is "a/b". Throws FailureError ImageInvalid for names that lead out of the
 * archive, also by links (`from` is the directory a relative target starts at).
 */
export const cleanName = (name: string, from = ''): string => {
  const parts: string[] = [];
  if (name.startsWith('/')) throw invalidImageArchive(`the name ${shown(name)} is absolute`);
  for (const part of `${from}/${name}`.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) throw invalidImageArchive(`the name ${shown(name)} leads out of it`);
  }
  return parts.join('/');
};

/** Only a whole name names an image; a bare "latest", as some tools write, does not say of what. */
const nameIn = (annotations: ReadonlyMap<string, string>): string | null => {
  const full = annotations.get(CONTAINERD_NAME);
  if (full !== undefined) return full;
  const refName = annotations.get(OCI_REF_NAME);
  return refName !== undefined && /[/:]/.test(refName) ? refName : null;
};

const namesOf = (text: string | null, digest: string): Pick<ArchivedImage, 'repoTags' | 'repoDigests'> => {
  const result = text === null ? null : parseImageReference(text);
  if (result?.ok !== true) return { repoTags: [], repoDigests: [] };
  const repoTag = repoTagOf(result.value);
  return { repoTags: repoTag === null ? [] : [repoTag], repoDigests: [repoDigestOf(result.value, digest)] };
};

const archivedImage = (descriptor: Descriptor): ArchivedImage => ({
  target: descriptor.digest,
  ...namesOf(nameIn(descriptor.annotations), descriptor.digest),
});

/** Images with one target are one, with all its names. */
const merged = (images: readonly ArchivedImage[]): readonly ArchivedImage[] => {
  const byTarget = Map.groupBy(images, ({ target }) => target);
  return [...byTarget].map(([target, same]) => ({
    target,
    repoTags: [...new Set(same.flatMap(({ repoTags }) => repoTags))],
    repoDigests: [...new Set(same.flatMap(({ repoDigests }) => repoDigests))],
  }));
};

/**
 * Images of an OCI layout's index.json. Attestations, and images that say they are for other platforms, are left out
 * unless there is nothing else: then loading them says why it can't be done.
 */
export const imagesOfOciIndex = (bytes: Buffer, wanted: Platform): readonly ArchivedImage[] => {
  const document = parseDocument(bytes, MediaType.ociIndex);
  const { manifests } = document.kind === 'index' ? document : { manifests: [] };
  if (manifests.length > IMAGES_MAX) throw invalidImageArchive(`it holds more than ${IMAGES_MAX} images`);
  const fitting = manifests.filter(
    ({ platform }) => platform === null || (platform.os === wanted.os && platform.architecture === wanted.architecture),
  );
  return merged((fitting.length > 0 ? fitting : manifests).map(archivedImage));
};

const tagOf = (text: string): readonly string[] => {
  const result = parseImageReference(text);
  const tag = result.ok ? repoTagOf(result.value) : null;
  if (tag === null) throw invalidImageArchive(`${shown(text)} is no name with a tag`);
  return [tag];
};

/** One issue for a whole list, however many of its entries are none. */
const namesIn = (field: string, max: number) =>
  z
    .custom<readonly string[]>(
      (value) => Array.isArray(value) && value.length <= max && value.every((name) => typeof name === 'string'),
      `${field} in its ${DOCKER_MANIFEST_FILE} is no list of at most ${max} names`,
    )
    .nullish();

const dockerManifestSchema = z
  .array(z.unknown(), `its ${DOCKER_MANIFEST_FILE} is no list of at most ${IMAGES_MAX} images`)
  .min(1, `its ${DOCKER_MANIFEST_FILE} is no list of at most ${IMAGES_MAX} images`)
  .max(IMAGES_MAX, `its ${DOCKER_MANIFEST_FILE} is no list of at most ${IMAGES_MAX} images`)
  .pipe(
    z.array(
      z.object(
        {
          Config: z.string(`Config in its ${DOCKER_MANIFEST_FILE} is no name`),
          Layers: namesIn('Layers', LAYERS_MAX),
          RepoTags: namesIn('RepoTags', TAGS_MAX),
        },
        `its ${DOCKER_MANIFEST_FILE} has an entry that is no image`,
      ),
    ),
  );

type DockerImage = z.output<typeof dockerManifestSchema>[number];

const writtenImage = ({ Config, Layers, RepoTags }: DockerImage, find: FindMember): WrittenImage => {
  const member = (name: string): StoredMember => {
    const found = find(cleanName(name));
    if (found === null) throw invalidImageArchive(`it has no ${shown(name)}, which its ${DOCKER_MANIFEST_FILE} names`);
    return found;
  };
  const described = ({ digest, sizeBytes }: StoredMember, mediaType: string): object => ({
    mediaType,
    digest,
    size: sizeBytes,
  });
  const manifest = {
    schemaVersion: 2,
    mediaType: MediaType.dockerManifest,
    config: described(member(Config), MediaType.dockerConfig),
    layers: (Layers ?? []).map((layer) => described(member(layer), MediaType.dockerTar)),
  };
  return {
    manifest: Buffer.from(JSON.stringify(manifest)),
    repoTags: (RepoTags ?? []).flatMap(tagOf),
  };
};

/** Images of `docker save`'s manifest.json, each with the manifest that it would have had in a registry. */
export const imagesOfDockerManifest = (bytes: Buffer, find: FindMember): readonly WrittenImage[] => {
  let content: unknown;
  try {
    content = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw invalidImageArchive(`its ${DOCKER_MANIFEST_FILE} is not JSON`);
  }
  const entries = dockerManifestSchema.safeParse(content);
  if (!entries.success) throw invalidImageArchive(entries.error.issues[0]?.message ?? 'it is not as it must be');
  return entries.data.map((entry) => writtenImage(entry, find));
};
