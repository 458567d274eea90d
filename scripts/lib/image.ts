/**
 * Makes container images from files of this machine, without any container tool: a busybox root file system as an OCI
 * image, written as an OCI layout archive or into the storage directory of a registry. The same input gives the same
 * bytes. Must know nothing of scribe.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip, zstdCompress } from 'node:zlib';
import { type Header, pack } from 'tar-stream';

const run = promisify(execFile);

/** One entry of a layer; `content` is text or bytes of a file. Mode defaults to 0755 for directories and programs. */
export type LayerEntry = Partial<Header> & { readonly name: string; readonly content?: string | Uint8Array };

/** The `config` object of an OCI image configuration, in the image-spec's own words. */
export interface ImageRunConfig {
  readonly User?: string;
  readonly Env?: readonly string[];
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly WorkingDir?: string;
  readonly Volumes?: Readonly<Record<string, object>>;
  readonly StopSignal?: string;
  readonly Labels?: Readonly<Record<string, string>>;
}

export type Compression = 'none' | 'gzip' | 'zstd';

export interface Image {
  /** SHA-256 digests, sha256:…; an image's id in CRI is its config digest. */
  readonly manifestDigest: string;
  readonly configDigest: string;
  readonly layers: readonly { readonly digest: string; readonly diffId: string }[];
  readonly mediaType: string;
  /** Manifest, config and layers by digest. */
  readonly blobs: ReadonlyMap<string, Uint8Array>;
}

const mediaTypes = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: { none: 'tar', gzip: 'tar+gzip', zstd: 'tar+zstd' },
} as const;

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** A tar archive of the entries in their order, everything of root's and of the epoch unless an entry says otherwise. */
export const tarOf = async (entries: readonly LayerEntry[]): Promise<Buffer> => {
  const archive = pack();
  for (const { content, ...header } of entries) {
    const full = { uid: 0, gid: 0, mtime: new Date(0), mode: 0o755, ...header };
    if (content === undefined) archive.entry(full, '');
    else archive.entry(full, Buffer.from(content));
  }
  archive.finalize();
  return Buffer.concat(await Array.fromAsync(archive as AsyncIterable<Buffer>));
};

const compress = (bytes: Buffer, compression: Compression): Promise<Buffer> => {
  if (compression === 'none') return Promise.resolve(bytes);
  return compression === 'gzip' ? promisify(gzip)(bytes) : promisify(zstdCompress)(bytes);
};

/** The shared libraries a program needs, as absolute paths; none for a static one. */
const librariesOf = async (program: string): Promise<string[]> => {
  const { stdout } = await run('ldd', [program]).catch(() => ({ stdout: '' }));
  return [...stdout.matchAll(/(\/[^\s()]+)/g)].map(([path]) => path).filter((path) => path !== program);
};

/** usr/lib/a.so → usr, usr/lib */
const parentsOf = (path: string): string[] => {
  const parts = path.split('/').filter((part) => part !== '');
  return parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('/'));
};

const findBusybox = async (): Promise<string> => {
  const { stdout } = await run('sh', ['-c', 'PATH=$PATH:/bin:/usr/bin:/sbin command -v busybox']).catch(() => ({
    stdout: '',
  }));
  if (stdout.trim() === '') throw new Error("busybox is not installed: run 'sh scripts/setup.sh run'");
  return stdout.trim();
};

/** A program of this machine under another name and mode, with the shared libraries that it needs. */
export const programLayer = async (program: string, name: string, mode: number): Promise<LayerEntry[]> => {
  const libraries = await librariesOf(program);
  return [
    ...[...new Set([name, ...libraries].flatMap(parentsOf))].map((path) => ({
      name: path,
      type: 'directory' as const,
    })),
    { name, mode, content: await readFile(program) },
    ...(await Promise.all(libraries.map(async (path) => ({ name: path.slice(1), content: await readFile(path) })))),
  ];
};

/** A root file system with this machine's busybox, all its applets, and the few files that programs expect. */
export const busyboxLayer = async (): Promise<LayerEntry[]> => {
  const busybox = await findBusybox();
  const [{ stdout: applets }, libraries] = await Promise.all([run(busybox, ['--list']), librariesOf(busybox)]);
  const directories = ['bin', 'dev', 'etc', 'home', 'lib', 'lib64', 'proc', 'root', 'run', 'sys', 'usr', 'var'];
  return [
    ...[...new Set([...directories, ...libraries.flatMap(parentsOf)])].map((name) => ({
      name,
      type: 'directory' as const,
    })),
    { name: 'tmp', type: 'directory', mode: 0o1777 },
    { name: 'bin/busybox', content: await readFile(busybox) },
    ...applets
      .trim()
      .split('\n')
      .filter((name) => name !== 'busybox')
      .map((name) => ({ name: `bin/${name}`, type: 'symlink' as const, linkname: 'busybox' })),
    ...(await Promise.all(libraries.map(async (path) => ({ name: path.slice(1), content: await readFile(path) })))),
    { name: 'usr/bin', type: 'symlink', linkname: '../bin' },
    { name: 'sbin', type: 'symlink', linkname: 'bin' },
    {
      name: 'etc/passwd',
      mode: 0o644,
      content: 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n',
    },
    { name: 'etc/group', mode: 0o644, content: 'root:x:0:\nnogroup:x:65534:\n' },
  ];
};

/** A layer as a registry has it. */
export interface PackedLayer {
  readonly diffId: string;
  readonly mediaType: string;
  readonly blob: Uint8Array;
}

export const packLayer = async (
  entries: readonly LayerEntry[],
  compression: Compression = 'gzip',
): Promise<PackedLayer> => {
  const tar = await tarOf(entries);
  return {
    diffId: digestOf(tar),
    mediaType: `application/vnd.oci.image.layer.v1.${mediaTypes.layer[compression]}`,
    blob: await compress(tar, compression),
  };
};

/** Puts an image together from its layers, base first. */
export const imageOfLayers = (layers: readonly PackedLayer[], config: ImageRunConfig = {}): Image => {
  const blobs = new Map<string, Uint8Array>();
  const add = (mediaType: string, bytes: Uint8Array): { mediaType: string; digest: string; size: number } => {
    const digest = digestOf(bytes);
    blobs.set(digest, bytes);
    return { mediaType, digest, size: bytes.byteLength };
  };
  const built = layers.map(({ diffId, mediaType, blob }) => ({ diffId, descriptor: add(mediaType, blob) }));
  const configBlob = add(
    mediaTypes.config,
    Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        os: 'linux',
        config,
        rootfs: { type: 'layers', diff_ids: built.map(({ diffId }) => diffId) },
      }),
    ),
  );
  const manifest = add(
    mediaTypes.manifest,
    Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: mediaTypes.manifest,
        config: configBlob,
        layers: built.map(({ descriptor }) => descriptor),
      }),
    ),
  );
  return {
    manifestDigest: manifest.digest,
    configDigest: configBlob.digest,
    layers: built.map(({ diffId, descriptor }) => ({ digest: descriptor.digest, diffId })),
    mediaType: mediaTypes.manifest,
    blobs,
  };
};

/** Puts an image together from the entries of its layers, base first. */
export const buildImage = async (
  layers: readonly (readonly LayerEntry[])[],
  config: ImageRunConfig = {},
  compression: Compression = 'gzip',
): Promise<Image> => imageOfLayers(await Promise.all(layers.map((entries) => packLayer(entries, compression))), config);

/** A busybox image; more layers go on top of it. Runs `sh` unless the config says otherwise. */
export const busyboxImage = async (
  config: ImageRunConfig = {},
  layers: readonly (readonly LayerEntry[])[] = [],
  compression: Compression = 'gzip',
): Promise<Image> =>
  buildImage(
    [await busyboxLayer(), ...layers],
    { Cmd: ['sh'], Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin'], ...config },
    compression,
  );

/** Writes an OCI layout as one tar file, the form that `image load` reads. `reference` is the full name with its tag. */
export const writeOciArchive = async (path: string, reference: string, image: Image): Promise<void> => {
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        mediaType: image.mediaType,
        digest: image.manifestDigest,
        size: image.blobs.get(image.manifestDigest)?.byteLength ?? 0,
        annotations: { 'org.opencontainers.image.ref.name': reference, 'io.containerd.image.name': reference },
      },
    ],
  };
  const entries: LayerEntry[] = [
    { name: 'oci-layout', mode: 0o644, content: '{"imageLayoutVersion":"1.0.0"}' },
    { name: 'index.json', mode: 0o644, content: JSON.stringify(index) },
    ...[...image.blobs].map(([digest, content]) => ({
      name: `blobs/${digest.replace(':', '/')}`,
      mode: 0o644,
      content,
    })),
  ];
  await writeFile(path, await tarOf(entries));
};

/** Puts an image into the storage directory of a (stopped or running) distribution registry, as a push would. */
export const writeToRegistry = async (
  storage: string,
  repository: string,
  tag: string,
  image: Image,
): Promise<void> => {
  const base = join(storage, 'docker/registry/v2');
  const write = async (path: string, content: string | Uint8Array): Promise<void> => {
    await mkdir(join(base, path, '..'), { recursive: true });
    await writeFile(join(base, path), content);
  };
  const repo = `repositories/${repository}`;
  for (const [digest, bytes] of image.blobs) {
    const hex = digest.slice('sha256:'.length);
    await write(`blobs/sha256/${hex.slice(0, 2)}/${hex}/data`, bytes);
    if (digest !== image.manifestDigest) await write(`${repo}/_layers/sha256/${hex}/link`, digest);
  }
  const hex = image.manifestDigest.slice('sha256:'.length);
  await write(`${repo}/_manifests/revisions/sha256/${hex}/link`, image.manifestDigest);
  await write(`${repo}/_manifests/tags/${tag}/index/sha256/${hex}/link`, image.manifestDigest);
  await write(`${repo}/_manifests/tags/${tag}/current/link`, image.manifestDigest);
};
