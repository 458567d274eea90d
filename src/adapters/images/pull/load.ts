/**
 * Loads the images of an archive, in the pulling thread. Every file in the archive is stored under the digest of what
 * it really holds, never under a name the archive chose; then its index says which of them are images. Files that
 * belong to none are removed again.
 */
import { createHash, type Hash, randomUUID } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { mkdir, mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { ImageContent } from '../../../domain/model/image-content.ts';
import { FailureError, isFullDisk } from '../../../domain/model/errors.ts';
import { sha256Of } from '../chain-ids.ts';
import { readPlain } from '../compression.ts';
import { type Descriptor, DOCUMENT_BYTES_MAX } from '../documents.ts';
import { keepFreeSpace } from '../../../platform/linux/free-space.ts';
import { createZlibInflater } from '../../../platform/linux/inflate/zlib.ts';
import { digestOfHex } from '../layout.ts';
import { createTarReader, type TarEntry, type TarHandler } from '../tar/reader.ts';
import {
  type ArchivedImage,
  cleanName,
  DOCKER_MANIFEST_FILE,
  imagesOfDockerManifest,
  imagesOfOciIndex,
  invalidImageArchive,
  OCI_INDEX_FILE,
  type StoredMember,
} from './archive-index.ts';
import { bringImage, type ImageSource } from './image.ts';
import type { PullObserver, PullShop } from './pull.ts';

const NAME_LENGTH_MAX = 1024;
const LINKS_MAX = 10;
const SPACE_CHECK_BYTES = 64 * 1024 * 1024;
/** It alone tells of the images of the oldest archives; newer ones have it beside what does. */
const OLDEST_FILE = 'repositories';
/** Blobs of an OCI layout are named by what they should hold. */
const BLOB_NAME = /^blobs\/sha256\/([0-9a-f]{64})$/;

type Member =
  | (StoredMember & { readonly kind: 'file'; readonly path: string })
  | { readonly kind: 'link'; readonly target: string };

interface OpenMember {
  readonly name: string;
  readonly path: string;
  readonly fd: number;
  readonly hash: Hash;
  sizeBytes: number;
}

/** Stores each file of the archive in `directory` and notes it in `members`. */
const createMemberWriter = (directory: string, entriesMax: number, members: Map<string, Member>): TarHandler => {
  let writing: OpenMember | null = null;
  let entries = 0;

  const begin = (entry: TarEntry): void => {
    const name = cleanName(Buffer.from(entry.path, 'latin1').toString('utf8'));
    if (name === '' || name.length > NAME_LENGTH_MAX) throw invalidImageArchive('it has a file without a proper name');
    switch (entry.type) {
      case 'file': {
        const path = join(directory, randomUUID());
        writing = { name, path, fd: openSync(path, 'wx', 0o600), hash: createHash('sha256'), sizeBytes: 0 };
        return;
      }
      case 'symbolicLink':
        members.set(name, { kind: 'link', target: cleanName(entry.linkPath, dirname(name)) });
        return;
      case 'hardLink':
        members.set(name, { kind: 'link', target: cleanName(entry.linkPath) });
        return;
      case 'directory':
        return;
      case 'character':
      case 'block':
      case 'fifo':
        throw invalidImageArchive('it has a device in it');
    }
  };

  const end = (): void => {
    if (writing === null) return;
    const { name, path, fd, hash, sizeBytes } = writing;
    writing = null;
    closeSync(fd);
    const hex = hash.digest('hex');
    const [, claimed] = BLOB_NAME.exec(name) ?? [];
    if (claimed !== undefined && claimed !== hex) throw invalidImageArchive(`its file ${name} holds something else`);
    members.set(name, { kind: 'file', path, digest: digestOfHex(hex), sizeBytes });
  };

  return {
    entry: (entry) => {
      entries += 1;
      if (entries > entriesMax) throw invalidImageArchive(`it has more than ${entriesMax} files`);
      const isRoot = entry.type === 'directory' && /^[./]*$/.test(entry.path) && !entry.path.includes('..');
      if (!isRoot) begin(entry);
    },
    data: (chunk) => {
      if (writing === null) return;
      for (let written = 0; written < chunk.length; ) written += writeSync(writing.fd, chunk, written);
      writing.hash.update(chunk);
      writing.sizeBytes += chunk.length;
    },
    endEntry: end,
  };
};

const readArchive = async (
  path: string,
  directory: string,
  shop: PullShop,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Member>> => {
  const { archiveEntriesMax, reservedBytes } = shop.options.limits;
  const members = new Map<string, Member>();
  const writer = createMemberWriter(directory, archiveEntriesMax, members);
  let hasEntries = false;
  const entry = (one: TarEntry): void => {
    hasEntries = true;
    writer.entry(one);
  };
  const reader = createTarReader({ ...writer, entry });
  /** What fails before there is any member was never a tar archive: its checksums are of no interest to anybody. */
  const reading = (work: () => void): void => {
    try {
      work();
    } catch (error) {
      throw hasEntries ? error : invalidImageArchive('it is no tar archive, plain or compressed with gzip or zstd');
    }
  };
  const handle = await open(path, 'r');
  const keep = keepFreeSpace({
    directory,
    reservedBytes,
    everyBytes: SPACE_CHECK_BYTES,
    message: 'The disk is too full to load the image archive: make room and load it again.',
  });
  try {
    for await (const chunk of await readPlain(handle.fd, createZlibInflater, () => undefined)) {
      signal.throwIfAborted();
      await keep(chunk.length);
      reading(() => reader.push(chunk));
    }
    reading(() => reader.end());
  } finally {
    await handle.close();
  }
  return members;
};

/** Says where the files that tell of images would have to be, and where they are instead. */
const noImageIn = (members: ReadonlyMap<string, Member>): string => {
  const told = [OCI_INDEX_FILE, DOCKER_MANIFEST_FILE];
  if (told.some((name) => members.has(name))) return 'it holds no image';
  if (members.has(OLDEST_FILE))
    return 'it is in the form that Docker wrote before 1.10, in which images have no configs: load it with a current Docker and save it again';
  const missing = `it holds no image: there is neither ${told.join(' nor ')} at its top`;
  const nested = [...members.keys()].find((name) => told.includes(basename(name)));
  if (nested === undefined) return missing;
  const directory = JSON.stringify(dirname(nested).slice(0, 200));
  return `${missing}, but one in its directory ${directory}; pack what is in that, as tar -C does`;
};

const createFinder =
  (members: ReadonlyMap<string, Member>) =>
  (name: string): (Member & { kind: 'file' }) | null => {
    let member = members.get(name);
    for (let links = 0; member?.kind === 'link' && links < LINKS_MAX; links += 1) member = members.get(member.target);
    return member?.kind === 'file' ? member : null;
  };

const readMember = async (member: Member & { kind: 'file' }): Promise<Buffer> => {
  if (member.sizeBytes > DOCUMENT_BYTES_MAX)
    throw invalidImageArchive(`its index is larger than ${DOCUMENT_BYTES_MAX} bytes`);
  return await readFile(member.path);
};

const findImages = async (members: ReadonlyMap<string, Member>, shop: PullShop): Promise<readonly ArchivedImage[]> => {
  const find = createFinder(members);
  const ociIndex = find(OCI_INDEX_FILE);
  const dockerManifest = find(DOCKER_MANIFEST_FILE);
  const ociImages = ociIndex === null ? [] : imagesOfOciIndex(await readMember(ociIndex), shop.options.platform);
  // Newer Docker writes both; its own file has the tags, but only the index has the manifests.
  if (ociImages.some(({ repoTags }) => repoTags.length > 0) || dockerManifest === null) return ociImages;
  const written = imagesOfDockerManifest(await readMember(dockerManifest), find);
  return await Promise.all(
    written.map(async ({ manifest, repoTags }) => ({
      target: await shop.blobs.put(manifest),
      repoTags,
      repoDigests: [],
    })),
  );
};

const createArchiveSource = (members: ReadonlyMap<string, Member>, shop: PullShop): ImageSource => {
  const files = [...members.values()].filter((member) => member.kind === 'file');
  const byDigest = new Map(files.map((file) => [file.digest, file]));
  const memberOf = (digest: string): Member & { kind: 'file' } => {
    const file = byDigest.get(digest);
    if (file === undefined) throw invalidImageArchive(`it lacks ${digest}, which one of its images needs`);
    return file;
  };
  const readDocument = async (digest: string): Promise<Buffer> => {
    const bytes = await readMember(memberOf(digest));
    if (sha256Of(bytes) !== digest) throw invalidImageArchive(`${digest} changed while it was read`);
    return bytes;
  };
  return {
    fetchDocument: async (digest) => ({ bytes: await readDocument(digest), mediaType: '' }),
    fetchConfig: ({ digest }) => readDocument(digest),
    fetchLayer: async ({ digest, sizeBytes }: Descriptor) => {
      const file = memberOf(digest);
      if (file.sizeBytes !== sizeBytes) throw invalidImageArchive(`${digest} is not of the size its manifest says`);
      await shop.blobs.adopt(file.path, digest);
    },
  };
};

/** Throws FailureError, or the signal's reason. The archive is removed either way. */
export const loadArchive = async (
  shop: PullShop,
  path: string,
  observer: PullObserver,
  signal: AbortSignal,
): Promise<readonly ImageContent[]> => {
  const ingest = dirname(path);
  await mkdir(ingest, { recursive: true, mode: 0o700 });
  const directory = await mkdtemp(join(ingest, 'archive-'));
  try {
    const members = await readArchive(path, directory, shop, signal);
    const source = createArchiveSource(members, shop);
    const archived = await findImages(members, shop);
    if (archived.length === 0) throw invalidImageArchive(noImageIn(members));
    const images: ImageContent[] = [];
    for (const { target, repoTags, repoDigests } of archived) {
      signal.throwIfAborted();
      images.push(
        await bringImage({
          target,
          source,
          blobs: shop.blobs,
          platform: shop.options.platform,
          names: { repoTags, repoDigests },
          observer: {
            layers: (layers) => observer.layers(target, layers),
            layerBegun: () => undefined,
            layerReady: (index) => observer.layerReady(target, index),
          },
        }),
      );
    }
    return images;
  } catch (error) {
    if (!isFullDisk(error)) throw error;
    throw new FailureError(
      'DiskFull',
      'The disk became full while the image archive was loaded: make room and load it again.',
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
    await rm(path, { force: true });
  }
};
