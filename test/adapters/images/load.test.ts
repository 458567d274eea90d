/** Loading archives: OCI layouts, what `docker save` wrote then and now, and archives that were made to do harm. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { before, describe, it } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import type { ImageContent } from '../../../src/domain/model/image-content.ts';
import type { Failure } from '../../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { type BuiltImage, buildImage, buildIndex, platform, sha256 } from '../../support/images/build.ts';
import { contextOf, failureOf, startStore, type TestStore } from '../../support/images/store.ts';
import { type TarMember, tar } from '../../support/images/tar.ts';

const blobName = (digest: string): string => `blobs/sha256/${digest.slice('sha256:'.length)}`;

const blobMembers = (...images: readonly BuiltImage[]): TarMember[] =>
  images.flatMap((image) =>
    [...image.blobs, [image.digest, image.manifest] as const].map(([digest, data]) => ({
      path: blobName(digest),
      data,
    })),
  );

const entryOf = (
  image: Pick<BuiltImage, 'manifest' | 'manifestType' | 'digest'>,
  annotations: Record<string, string> = {},
): object => ({
  mediaType: image.manifestType,
  digest: image.digest,
  size: image.manifest.length,
  annotations,
});

const indexMember = (...manifests: readonly object[]): TarMember => ({
  path: 'index.json',
  data: JSON.stringify({ schemaVersion: 2, manifests }),
});

const layoutMember: TarMember = { path: 'oci-layout', data: '{"imageLayoutVersion":"1.0.0"}' };
const layer = (name: string): Buffer => tar([{ path: name, data: name }]);

describe('loading archives', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let store: TestStore;
  let uploads = 0;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    store = await startStore(owner);
  });

  const load = async (archive: Buffer, from = store): Promise<readonly ImageContent[]> => {
    uploads += 1;
    const upload = `upload-${uploads}`;
    // In pieces, as a client sends it.
    const pieces = Array.from({ length: Math.ceil(archive.length / 65_536) }, (_, index) =>
      archive.subarray(index * 65_536, (index + 1) * 65_536),
    );
    from.adapter.acceptUpload(upload, Readable.from(pieces));
    return (await from.adapter.effects.LoadImages({ kind: 'LoadImages', upload }, contextOf())).images;
  };

  const refused = async (members: readonly TarMember[] | Buffer, pattern: RegExp, from = store): Promise<Failure> => {
    const archive = Buffer.isBuffer(members) ? members : tar(members);
    const failure = await failureOf(load(archive, from));
    assert.match(failure.message, pattern);
    assert.deepEqual(await readdir(join(from.root, 'images/ingest')), []);
    return failure;
  };

  it('loads OCI layouts with the names they carry, plain and compressed', async () => {
    const image = buildImage([{ tar: layer('a') }, { tar: layer('b'), compression: 'zstd' }], {
      config: { User: '5' },
    });
    const members = [
      layoutMember,
      ...blobMembers(image),
      indexMember(
        entryOf(image, {
          'io.containerd.image.name': 'docker.io/library/app:v1',
          'org.opencontainers.image.ref.name': 'v1',
        }),
        entryOf(image, { 'org.opencontainers.image.ref.name': 'registry.example/app:v2' }),
      ),
    ];
    for (const archive of [tar(members), gzipSync(tar(members)), zstdCompressSync(tar(members.toReversed()))]) {
      const [loaded, ...others] = await load(archive);
      assert.equal(others.length, 0);
      assert.deepEqual(loaded?.repoTags, ['docker.io/library/app:v1', 'registry.example/app:v2']);
      assert.deepEqual(loaded.repoDigests, [
        `docker.io/library/app@${image.digest}`,
        `registry.example/app@${image.digest}`,
      ]);
      assert.deepEqual([loaded.manifestDigest, loaded.config], [image.digest, { user: '5' }]);
      const [a = '', b = ''] = store.layerDirs(loaded);
      assert.deepEqual([await readFile(join(a, 'a'), 'utf8'), await readFile(join(b, 'b'), 'utf8')], ['a', 'b']);
    }
    assert.deepEqual(await readdir(join(store.root, 'images/ingest')), []);
  });

  it('loads an image without a name, and one of several platforms', async () => {
    const mine = buildImage([{ tar: layer('mine') }]);
    const other = buildImage([{ tar: layer('other') }], { architecture: 'riscv64' });
    const index = buildIndex([
      { image: other, os: 'linux', architecture: 'riscv64' },
      { image: mine, ...platform },
    ]);
    // As exporters do, without the content of other platforms.
    const indexBlob = { path: blobName(index.digest), data: index.manifest };
    const [loaded] = await load(
      tar([
        ...blobMembers(mine),
        indexBlob,
        indexMember(entryOf(index, { 'org.opencontainers.image.ref.name': 'latest' })),
      ]),
    );
    assert.deepEqual([loaded?.repoTags, loaded?.repoDigests], [[], []]);
    assert.equal(loaded?.manifestDigest, mine.digest);
    assert.ok(loaded.blobs.includes(index.digest));
    const listed = { ...entryOf(other), platform: { os: 'linux', architecture: 'riscv64' } };
    const images = await load(tar([...blobMembers(mine, other), indexMember(listed, entryOf(mine))]));
    assert.deepEqual(
      images.map(({ manifestDigest }) => manifestDigest),
      [mine.digest],
    );
    await refused([...blobMembers(other), indexMember(listed)], /made for "linux\/riscv64"/);
  });

  it('loads what docker save writes: older without blobs by digest, newer with both indexes', async () => {
    const [one, two] = [layer('one'), layer('two')];
    const image = buildImage([
      { tar: one, compression: 'none' },
      { tar: two, compression: 'none' },
      { tar: one, compression: 'none' },
    ]);
    const configName = `${sha256(image.config).slice(7)}.json`;
    const older = [
      { path: 'aaa/', flag: '5' },
      { path: 'aaa/VERSION', data: '1.0' },
      { path: 'aaa/layer.tar', data: one },
      { path: 'bbb/layer.tar', data: two },
      { path: 'ccc/layer.tar', flag: '2', linkPath: '../aaa/layer.tar' },
      { path: configName, data: image.config },
      {
        path: 'manifest.json',
        data: JSON.stringify([
          {
            Config: configName,
            RepoTags: ['busybox:1.36', 'registry.example:5000/other:tag'],
            Layers: ['aaa/layer.tar', 'bbb/layer.tar', 'ccc/layer.tar'],
          },
        ]),
      },
      { path: 'repositories', data: '{}' },
    ];
    const [loaded] = await load(tar(older));
    assert.equal(loaded?.id, sha256(image.config));
    assert.deepEqual(loaded.repoTags, ['docker.io/library/busybox:1.36', 'registry.example:5000/other:tag']);
    assert.deepEqual(loaded.repoDigests, []);
    assert.deepEqual(
      loaded.layers.map(({ diffId }) => diffId),
      image.diffIds,
    );
    assert.ok((await store.adapter.listContent()).blobs.includes(loaded.manifestDigest));

    const dockerManifest = {
      path: 'manifest.json',
      data: JSON.stringify([
        {
          Config: blobName(sha256(image.config)),
          RepoTags: ['busybox:1.36'],
          Layers: image.layers.map(({ digest }) => blobName(digest)),
        },
      ]),
    };
    const named = { 'io.containerd.image.name': 'docker.io/library/busybox:1.36' };
    const [newer] = await load(
      tar([...blobMembers(image), dockerManifest, layoutMember, indexMember(entryOf(image, named))]),
    );
    assert.deepEqual([newer?.repoTags, newer?.manifestDigest], [['docker.io/library/busybox:1.36'], image.digest]);
    const [unnamed] = await load(
      tar([...blobMembers(image), dockerManifest, layoutMember, indexMember(entryOf(image))]),
    );
    assert.deepEqual([unnamed?.repoTags, unnamed?.id], [['docker.io/library/busybox:1.36'], loaded.id]);
  });

  it('removes what belongs to no image', async (t) => {
    const own = await startStore(t);
    const image = buildImage([{ tar: layer('needed') }]);
    const stray = { path: 'blobs/sha256/'.concat(sha256('stray').slice(7)), data: 'stray' };
    const [loaded] = await load(
      tar([stray, { path: 'README', data: 'x' }, ...blobMembers(image), indexMember(entryOf(image))]),
      own,
    );
    assert.deepEqual(new Set((await own.adapter.listContent()).blobs), new Set(loaded?.blobs));
  });

  it('refuses archives that lead out, lie or are something else', async () => {
    const image = buildImage([{ tar: layer('x') }]);
    const index = indexMember(entryOf(image));
    const good = [...blobMembers(image), index];
    assert.equal(
      (await refused([{ path: '../../escape', data: 'x' }, ...good], /leads out of it/)).reason,
      'ImageInvalid',
    );
    await refused([{ path: '/etc/passwd', data: 'x' }, ...good], /absolute/);
    await refused([{ path: 'link', flag: '2', linkPath: '/etc/passwd' }, ...good], /absolute/);
    await refused([{ path: 'a/link', flag: '2', linkPath: '../../x' }, ...good], /leads out of it/);
    await refused([{ path: 'index.json', flag: '2', linkPath: 'index.json' }, ...blobMembers(image)], /no image/);
    await refused([{ path: 'dev', flag: '3', major: 1, minor: 5 }, ...good], /a device/);
    await refused([{ path: blobName(sha256('a')), data: 'b' }, ...good], /holds something else/);
    await refused([index], /lacks sha256:/);
    await refused([{ path: 'x', data: 'x' }], /holds no image/);
    // Before it is read, not when it is parsed.
    for (const path of ['index.json', 'manifest.json'])
      await refused([{ path, data: 'x'.repeat(5 * 1024 * 1024) }], /its index is larger than/);
    await refused([{ path: 'manifest.json', data: '[{"Config":"../../etc/passwd","Layers":[]}]' }], /leads out of it/);
    await refused([{ path: 'manifest.json', data: '[{"Config":"missing","Layers":[]}]' }], /has no "missing"/);
    await refused([{ path: 'manifest.json', data: '{}' }], /no list/);
    await refused(
      [
        { path: 'manifest.json', data: '[{"Config":"c","Layers":7}]' },
        { path: 'c', data: '{}' },
      ],
      /Layers in its/,
    );
    await refused(
      [{ path: 'layout/index.json', data: '{}' }],
      /neither index\.json nor manifest\.json at its top, but one in its directory "layout"; pack what is in that/,
    );
    await refused(
      [
        { path: 'repositories', data: '{"app":{"1":"aa"}}' },
        { path: 'aa/json', data: '{"id":"aa"}' },
        { path: 'aa/layer.tar', data: 'x' },
      ],
      /the form that Docker wrote before 1\.10, .*: load it with a current Docker and save it again\.$/,
    );
    for (const text of ['not an archive', 'x'.repeat(5000)]) {
      await refused(Buffer.from(text), /is no tar archive, plain or compressed with gzip or zstd\.$/);
      await refused(gzipSync(text), /is no tar archive, plain or/);
    }
    await refused(tar(good).subarray(0, 3000), /malformed/);
    const lying = buildImage([{ tar: layer('lying') }], { layerExtra: { size: 5 } });
    await refused([...blobMembers(lying), indexMember(entryOf(lying))], /not of the size/);
    const manifests = JSON.stringify({ schemaVersion: 2, manifests: [], layers: [] });
    await refused([{ path: 'index.json', data: manifests }], /not clearly an index or a manifest/);
  });

  it('is bounded in files and space', async (t) => {
    const few = await startStore(t, { limits: { archiveEntriesMax: 10 } });
    const many = Array.from({ length: 20 }, (_, index) => ({ path: `f${index}`, data: 'x' }));
    await refused(many, /more than 10 files/, few);
    const full = await startStore(t, { limits: { reservedBytes: Number.MAX_SAFE_INTEGER } });
    assert.equal((await refused(many, /too full/, full)).reason, 'DiskFull');
  });

  it('fails when the upload breaks off or is not there', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.alloc(1000);
      await Promise.resolve();
      throw new Error('the client went away');
    }
    store.adapter.acceptUpload('broken', Readable.from(broken()));
    const effect = { kind: 'LoadImages', upload: 'broken' } as const;
    const failure = await failureOf(store.adapter.effects.LoadImages(effect, contextOf()));
    assert.deepEqual([failure.reason, /client went away/.test(failure.message)], ['Interrupted', true]);
    assert.equal((await failureOf(store.adapter.effects.LoadImages(effect, contextOf()))).reason, 'Interrupted');
    const stream = Readable.from([Buffer.alloc(10)]);
    store.adapter.acceptUpload('forgotten', stream);
    store.adapter.forgetUpload('forgotten');
    assert.equal(stream.destroyed, true);
    assert.deepEqual(await readdir(join(store.root, 'images/ingest')), []);
  });
});
