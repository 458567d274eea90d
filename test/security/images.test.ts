/**
 * Classes of vulnerabilities that come with an image: its documents, its layers, its users, its volumes. Each test is
 * named after the advisories that its class is known by. Needs root.
 */
import assert from 'node:assert/strict';
import { lstat, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { before, beforeEach, describe, it } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { fillImageVolume } from '../../src/adapters/bundle/image-volume.ts';
import { DOCUMENT_BYTES_MAX, parseConfig, parseDocument } from '../../src/adapters/images/documents.ts';
import { pooledLayerCalls, waitingLayerCalls } from '../../src/adapters/images/trees/layer-calls.ts';
import { markOpaque } from '../../src/adapters/images/trees/opaque.ts';
import { copyLooks } from '../../src/adapters/images/trees/undescribed-directories.ts';
import { imageFileReader } from '../../src/adapters/inspect/image-files.ts';
import { resolveUser } from '../../src/adapters/inspect/users.ts';
import type { ContainerFacts, ContainerQuestions } from '../../src/domain/model/container-facts.ts';
import { readXattr } from '../../src/platform/linux/syscalls.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { withReason } from '../support/failures.ts';
import { buildImage } from '../support/images/build.ts';
import { type TarMember, tar } from '../support/images/tar.ts';
import { startWorkshop, type Workshop } from '../support/images/unpacking.ts';
import { requireRoot } from '../support/netns.ts';
import { tempDir } from '../support/temp-dir.ts';

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const ofImage = (message = /./) => withReason('ImageInvalid', message);

describe('documents of an image', () => {
  it('CVE-2026-53488: labels of an image are taken for nothing', () => {
    const config = {
      Labels: { 'containerd.io/restart.loguri': 'binary:///bin/sh', 'io.containerd.x': 'y' },
      Env: ['A=b'],
    };
    const built = buildImage([{ tar: tar([{ path: 'a' }]) }], { config });
    assert.deepEqual(parseConfig(built.config).config, { env: ['A=b'] });
  });

  it('CVE-2024-40635, CVE-2026-46680: a User that no id can be is refused, and never means another one', () => {
    for (const user of ['4294967295', '4294967296', '9223372036854775808', '0:4294967296', `${2n ** 64n}`])
      assert.throws(() => parseConfig(json({ config: { User: user } })), ofImage(/ids go from 0 to 4294967294/), user);
    for (const user of ['0', '1000:1000', '4294967294', 'www-data'])
      assert.equal(parseConfig(json({ config: { User: user } })).config.user, user);
  });

  it('CVE-2023-25153: documents are no longer than their bound, and lists in them no longer than theirs', () => {
    const padded = Buffer.concat([json({ schemaVersion: 2, manifests: [] }), Buffer.alloc(DOCUMENT_BYTES_MAX, ' ')]);
    for (const parse of [(bytes: Buffer) => parseDocument(bytes, ''), parseConfig])
      assert.throws(() => parse(padded), ofImage(/larger than/));
    const { manifest } = buildImage([{ tar: tar([{ path: 'a' }]) }]);
    const fields = JSON.parse(manifest.toString()) as { layers: unknown[] };
    const layers = Array.from({ length: 200 }, () => fields.layers[0]);
    assert.throws(() => parseDocument(json({ ...fields, layers }), ''), ofImage(/more than \d+ layers/));
  });

  it('GHSA-5j5w-g665-5m35: a document that could be read as a manifest and as an index is refused', () => {
    const { manifest } = buildImage([{ tar: tar([{ path: 'a' }]) }]);
    const fields = JSON.parse(manifest.toString()) as object;
    for (const document of [
      { ...fields, manifests: [] },
      { schemaVersion: 2, manifests: [], layers: [] },
      { schemaVersion: 2, manifests: [], config: {} },
    ])
      assert.throws(() => parseDocument(json(document), ''), ofImage(/not clearly an index or a manifest/));
  });
});

describe("users of an image's files", () => {
  const root: ContainerQuestions['user'] = { mergeImageGroups: true, supplementalGroups: [], imageUser: '' };
  const userOf = (
    files: Readonly<Record<string, string>>,
    user: Partial<ContainerQuestions['user']>,
  ): Promise<ContainerFacts['user']> =>
    resolveUser({ ...root, ...user }, (path) => {
      const text = files[path];
      return Promise.resolve(text === undefined ? null : Buffer.from(text));
    });

  it('CVE-2026-47262, CVE-2025-4437: a huge /etc/passwd or /etc/group is refused, and not read', async (t) => {
    const dir = await tempDir(t);
    await mkdir(join(dir, 'etc'));
    const read = imageFileReader(() => [dir]);
    const ask = () => resolveUser({ ...root, imageUser: 'root' }, (path, maxBytes) => read([], path, maxBytes));
    for (const name of ['passwd', 'group']) {
      for (const each of ['passwd', 'group']) await writeFile(join(dir, 'etc', each), 'root:x:0:0::/:/bin/sh\n');
      assert.equal((await ask()).uid, 0);
      await truncate(join(dir, 'etc', name), 4 * 1024 ** 4);
      const heldBytes = process.memoryUsage().rss;
      await assert.rejects(ask(), ofImage(new RegExp(`^/etc/${name} of the image has \\d+ bytes`)));
      assert.ok(process.memoryUsage().rss - heldBytes < 256 * 1024 ** 2);
    }
  });

  it('CVE-2023-25173, CVE-2022-2995: the primary group is among the supplementary ones', async () => {
    const files = { '/etc/passwd': 'web:x:1000:1001::/:/bin/sh\n', '/etc/group': 'more:x:7:web\n' };
    for (const user of [
      { username: 'web' },
      { uid: '1000' },
      { imageUser: 'web' },
      { uid: '1000', mergeImageGroups: false, supplementalGroups: ['9'] },
    ]) {
      const { gid, additionalGids } = await userOf(files, user);
      assert.equal(gid, 1001);
      assert.equal(additionalGids[0], 1001, JSON.stringify(user));
    }
    const { additionalGids } = await userOf(files, { uid: '1000', gid: '55' });
    assert.deepEqual(additionalGids, [55, 7]);
  });

  it('CVE-2024-40635, CVE-2026-46680: an id beyond 32 bits is no name either', async () => {
    const files = { '/etc/passwd': '4294967296:x:0:0::/:/bin/sh\nroot:x:0:0::/:/bin/sh\n' };
    for (const imageUser of ['4294967296', '4294967295', '0:4294967296'])
      await assert.rejects(userOf(files, { imageUser }), ofImage(/ids go from 0/), imageUser);
    await assert.rejects(userOf(files, { imageUser: '-1' }), ofImage(/does not know/));
  });
});

describe('layers of an image', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let workshop: Workshop;
  /** A directory of the host that no layer may reach. */
  let outside: string;
  let canary: string;

  before(async () => {
    requireRoot();
    workshop = await startWorkshop(owner);
    outside = await tempDir(owner);
    canary = join(outside, 'canary');
  });

  beforeEach(() => writeFile(canary, 'untouched', { mode: 0o600 }));

  const isUntouched = async (): Promise<void> => {
    assert.deepEqual(await readdir(outside), ['canary']);
    assert.equal(await readFile(canary, 'utf8'), 'untouched');
    const { mode, uid, nlink } = await lstat(canary);
    assert.deepEqual([mode & 0o7777, uid, nlink], [0o600, 0, 1]);
  };
  const unpack = async (...layers: readonly (readonly TarMember[])[]): Promise<readonly string[]> => {
    const made = await workshop.unpack(...layers.map((members) => tar(members)));
    await isUntouched();
    return made;
  };
  const refused = async (members: readonly TarMember[]): Promise<void> => {
    await assert.rejects(workshop.unpack(tar(members)), ofImage());
    await isUntouched();
  };

  it('CVE-2025-47290: a link in the place of a directory leads nowhere outside, within a layer and over two', async () => {
    const [layer = ''] = await unpack([
      { path: 'd/', flag: '5' },
      { path: 'd/before', data: 'x' },
      { path: 'l', flag: '2', linkPath: outside },
      { path: 'l/canary', data: 'overwritten', mode: 0o777, uid: 7 },
      { path: 'l/made', data: 'x' },
      { path: 'up', flag: '2', linkPath: `${'../'.repeat(20)}${outside.slice(1)}` },
      { path: 'up/made-too', data: 'x' },
    ]);
    assert.deepEqual((await readdir(join(layer, outside))).toSorted(), ['canary', 'made', 'made-too']);
    await unpack([
      { path: 'd/', flag: '5' },
      { path: 'd', flag: '2', linkPath: outside },
      { path: 'd/canary', data: 'overwritten' },
    ]);
    await unpack([{ path: 'e', flag: '2', linkPath: outside }], [{ path: 'e/canary', data: 'overwritten' }]);
  });

  it('CVE-2025-47290: nor does a directory that the unpacking process names, whoever speaks for it', async (t) => {
    const root = await tempDir(t);
    await mkdir(join(root, 'd'));
    await symlink(outside, join(root, 'l'));
    await symlink(outside, join(root, 'd/l'));
    await mkdir(join(outside, 'below'), { mode: 0o700 });
    onCleanup(t, () => rm(join(outside, 'below'), { recursive: true }));
    for (const path of ['l', 'l/below', 'd/l', 'd/l/below', '..', `../${basename(outside)}`, 'd/../l', 'd//', 'no'])
      for (const calls of [pooledLayerCalls, waitingLayerCalls])
        for (const touched of [
          markOpaque({ root, opaque: [path] }, calls),
          copyLooks({ root, implied: [path], lowerDirs: [root] }, calls),
        ])
          await assert.rejects(touched, path);
    for (const path of [outside, join(outside, 'below')]) {
      assert.equal((await lstat(path)).mode & 0o7777, 0o700);
      assert.equal(await readXattr(path, 'trusted.overlay.opaque'), null);
    }
    await markOpaque({ root, opaque: ['', 'd'] }, pooledLayerCalls);
    assert.ok(await readXattr(join(root, 'd'), 'trusted.overlay.opaque'));
  });

  it('CVE-2021-32760: a hard link or a change of mode reaches no file of the host', async () => {
    await refused([{ path: 'hard', flag: '1', linkPath: canary }]);
    await refused([{ path: 'hard', flag: '1', linkPath: `../../../../..${canary}` }]);
    await unpack([
      { path: 'soft', flag: '2', linkPath: canary },
      { path: 'hard', flag: '1', linkPath: 'soft', mode: 0o777, uid: 9, gid: 9 },
    ]);
    await unpack([
      { path: 'soft', flag: '2', linkPath: outside },
      { path: 'soft/', flag: '5', mode: 0o777, uid: 9 },
    ]);
  });

  it('decompression bombs: a small blob that unpacks to much more than its bound is given up', async () => {
    const bomb = tar([{ path: 'zeros', data: Buffer.alloc(64 * 1024 ** 2) }]);
    const bounded = await startWorkshop(owner, { layerBytesMax: 8 * 1024 ** 2 });
    for (const blob of [gzipSync(bomb, { level: 9 }), zstdCompressSync(bomb)]) {
      assert.ok(blob.length < 1024 ** 2);
      await assert.rejects(bounded.unpack({ blob, tar: bomb }), ofImage(/more than/));
    }
    await isUntouched();
  });

  it('CVE-2024-5154: what the host would follow in an image is kept as it is, and not followed', async () => {
    const [layer = ''] = await unpack([
      { path: 'etc/', flag: '5' },
      { path: 'etc/mtab', flag: '2', linkPath: canary },
      { path: 'etc/mtab', data: 'an ordinary file' },
      { path: 'etc/hosts', flag: '2', linkPath: canary },
    ]);
    assert.equal(await readFile(join(layer, 'etc/mtab'), 'utf8'), 'an ordinary file');
    assert.ok((await lstat(join(layer, 'etc/hosts'))).isSymbolicLink());
  });

  it('CVE-2022-23648: a volume that an image declares is filled from the image, wherever its path leads', async (t) => {
    const dir = await tempDir(t);
    const layer = join(dir, 'layer');
    await mkdir(join(layer, 'inside'), { recursive: true });
    await writeFile(join(layer, 'inside/own'), 'x');
    const upwards = `${'../'.repeat(20)}${outside.slice(1)}`;
    await symlink(outside, join(layer, 'absolute'));
    await symlink(upwards, join(layer, 'upwards'));
    const contentOf = async (path: string, name: string): Promise<readonly string[]> => {
      const volume = join(dir, 'volumes', name);
      await fillImageVolume([layer], path, volume, () => Promise.resolve());
      return readdir(volume);
    };
    assert.deepEqual(await contentOf('/inside', 'inside'), ['own']);
    assert.deepEqual(await contentOf('/absolute', 'absolute'), []);
    assert.deepEqual(await contentOf('/upwards', 'upwards'), []);
    assert.deepEqual(await contentOf(`/${upwards}`, 'dots'), []);
    await isUntouched();
  });
});
